"""Mistakes about the Node: its Lease, status, conditions, capacity, addresses and labels, and its events."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    # lease.py, schedule.py
    Mutant(
        "a new lease has no owner",
        "lease.py",
        '            "ownerReferences": [owner_reference(node_name, owner_uid)],\n',
        "",
    ),
    Mutant(
        "a lease is renewed to the second",
        "lease.py",
        "    text = micro_timestamp(now)",
        "    text = micro_timestamp(now.replace(microsecond=0))",
    ),
    Mutant(
        "a renewal after the clock went back repeats the old time",
        "lease.py",
        "timedelta(microseconds=1)",
        "timedelta(microseconds=0)",
    ),
    Mutant(
        "a renewal keeps the old duration",
        "lease.py",
        '{**before, "leaseDurationSeconds": duration_seconds, "renewTime"',
        '{"leaseDurationSeconds": duration_seconds, **before, "renewTime"',
    ),
    Mutant("jitter shortens the period", "schedule.py", "(1 + factor * rand)", "(1 - factor * rand)"),
    Mutant("jitter adds a whole factor", "schedule.py", "(1 + factor * rand)", "(1 + factor + rand)"),
    Mutant(
        "a bucket gathers turns without a limit",
        "schedule.py",
        "min(self._at_once, self._left + earned) - 1",
        "self._left + earned - 1",
    ),
    Mutant(
        "the report frequency is ignored",
        "schedule.py",
        "return now_seconds - self.last_seconds >= self.period_seconds + self.delay_seconds",
        "return now_seconds >= self.last_seconds",
    ),
    Mutant("a report is due a moment too late", "schedule.py", ">= self.period_seconds", "> self.period_seconds"),
    Mutant("a report spreads only to later", "schedule.py", "(rand - 0.5)", "rand"),
    # nodestatus.py: conditions
    Mutant(
        "memory pressure has the reason of its absence",
        "nodestatus.py",
        '("KubeletHasInsufficientMemory", "kubelet has insufficient memory available")',
        '("KubeletHasSufficientMemory", "kubelet has insufficient memory available")',
    ),
    Mutant(
        "a misspelt reason of DiskPressure", "nodestatus.py", '"KubeletHasNoDiskPressure"', '"KubeletHasSufficientDisk"'
    ),
    Mutant(
        "PID pressure speaks of PIDs",
        "nodestatus.py",
        '"kubelet has insufficient PID available"',
        '"kubelet has insufficient PIDs available"',
    ),
    Mutant(
        "the reason of Ready is that of an older kubelet",
        "nodestatus.py",
        '"kubelet is posting ready status"',
        '"kubelet is ready."',
    ),
    Mutant(
        "a pressure that stays keeps its heartbeat",
        "nodestatus.py",
        'return {**old, "lastHeartbeatTime": now}',
        "return {**old}",
    ),
    Mutant(
        "a pressure that stays has a new transition time",
        "nodestatus.py",
        'return {**old, "lastHeartbeatTime": now}',
        'return {**old, "lastHeartbeatTime": now, "lastTransitionTime": now}',
    ),
    Mutant(
        "Ready has a new transition time with each report",
        "nodestatus.py",
        'since = old["lastTransitionTime"] if old and old["status"] == str(holds) else now',
        "since = now",
    ),
    Mutant(
        "Ready keeps its transition time when it flips",
        "nodestatus.py",
        'since = old["lastTransitionTime"] if old and old["status"] == str(holds) else now',
        'since = old["lastTransitionTime"] if old else now',
    ),
    Mutant(
        "Ready comes first",
        "nodestatus.py",
        '{kind: _pressure(facts, kind) for kind in _PRESSURE} | {"Ready": _ready(facts)}',
        '{"Ready": _ready(facts)} | {kind: _pressure(facts, kind) for kind in _PRESSURE}',
    ),
    Mutant(
        "the conditions of others are dropped",
        "nodestatus.py",
        'kept = [ours.pop(condition["type"], condition) for condition in observed]',
        'kept = [ours.pop(condition["type"]) for condition in observed if condition["type"] in ours]',
    ),
    Mutant(
        "a node that lacks capacity is ready",
        "nodestatus.py",
        "if missing := missing_capacity(facts):",
        "if (missing := missing_capacity(facts)) and problems:",
    ),
    Mutant(
        "a problem is told twice",
        "nodestatus.py",
        "distinct = list(dict.fromkeys(problems))",
        "distinct = list(problems)",
    ),
    # pressure.py
    Mutant(
        "a threshold is met when it is reached",
        "pressure.py",
        "return signal.available < self.value",
        "return signal.available <= self.value",
    ),
    Mutant(
        "a percentage in float64",
        "pressure.py",
        "fraction = _float32(_float32(percent) / 100)",
        "fraction = percent / 100",
    ),
    Mutant(
        "the minimum reclaim never counts",
        "pressure.py",
        "self.minimum_reclaim.of(signal.capacity) if was_due else 0",
        "0",
    ),
    Mutant(
        "a grace period begins anew at each look",
        "pressure.py",
        "threshold: before.met.get(threshold, now_seconds)",
        "threshold: now_seconds",
    ),
    Mutant(
        "a condition goes with the shortage",
        "pressure.py",
        "return NodePressure(met, due, kept | seen)",
        "return NodePressure(met, due, seen)",
    ),
    Mutant(
        "a condition stays a moment too long",
        "pressure.py",
        "now_seconds - at < transition_seconds",
        "now_seconds - at <= transition_seconds",
    ),
    Mutant("the default memory threshold in decimal units", "pressure.py", '"100Mi"', '"100M"'),
    Mutant("0 % is a threshold", "pressure.py", 'if text in {"0%", "100%"}', 'if text == "100%"'),
    Mutant(
        "PIDs in use count as free",
        "pressure.py",
        "Observation(host.pids_max - host.pids_used, host.pids_max)",
        "Observation(host.pids_used, host.pids_max)",
    ),
    # capacity.py
    Mutant(
        "allocatable ignores what is reserved",
        "capacity.py",
        "amount.minus(reserved.get(name, _ZERO)).at_least_zero()",
        "amount",
    ),
    Mutant("only one reservation counts", "capacity.py", "for part in (kube, system, *", "for part in (kube, *"),
    Mutant(
        "allocatable may be negative",
        "capacity.py",
        "amount.minus(reserved.get(name, _ZERO)).at_least_zero()",
        "amount.minus(reserved.get(name, _ZERO))",
    ),
    Mutant(
        "huge pages stay in memory",
        "capacity.py",
        'left["memory"] = left["memory"].minus(amount).at_least_zero()',
        'left["memory"] = left["memory"].at_least_zero()',
    ),
    Mutant(
        "hard thresholds do not come off allocatable",
        "capacity.py",
        "thresholds = () if resources.ignore_eviction else config.eviction.hard",
        "thresholds = ()",
    ),
    Mutant(
        "soft thresholds come off allocatable",
        "capacity.py",
        "else config.eviction.hard",
        "else (*config.eviction.hard, *config.eviction.soft)",
    ),
    Mutant("reserved CPUs add to what is reserved", "capacity.py", '        kube.pop("cpu", None)\n', ""),
    Mutant(
        "a CPU list loses its last CPU",
        "capacity.py",
        "int(last if dash else first) + 1)",
        "int(last if dash else first))",
    ),
    Mutant(
        "pods per core exceed the most pods",
        "capacity.py",
        'pods = min(own["cpu"].value * resources.pods_per_core, resources.max_pods)',
        'pods = own["cpu"].value * resources.pods_per_core',
    ),
    Mutant(
        "the resources of others vanish from capacity",
        "nodestatus.py",
        "else {**observed, **own}}",
        "else own}",
    ),
    # quantity.py, times.py
    Mutant(
        "a quantity is rounded down",
        "quantity.py",
        "return -(-nano // unit) if nano >= 0 else nano // unit",
        "return nano // unit",
    ),
    Mutant(
        "parsing rounds down to a billionth",
        "quantity.py",
        "nano = -(-amount.numerator * _NANO // amount.denominator)",
        "nano = amount.numerator * _NANO // amount.denominator",
    ),
    Mutant(
        "bytes are printed in decimal units",
        "quantity.py",
        "return cls(count * _NANO, Format.BINARY_SI)",
        "return cls(count * _NANO)",
    ),
    Mutant(
        "a zero keeps its own format",
        "quantity.py",
        "Quantity(self.nano + other.nano, self.format if self.nano else other.format)",
        "Quantity(self.nano + other.nano, self.format)",
    ),
    Mutant(
        "quantities are compared as text",
        "quantity.py",
        "return left == right or Quantity.parse(left).nano == Quantity.parse(right).nano",
        "return left == right",
    ),
    Mutant(
        "a duration drops its fraction",
        "times.py",
        "return int(whole or 0) * _UNITS[unit] + part",
        "return int(whole or 0) * _UNITS[unit]",
    ),
    Mutant(
        "the largest int64 is out of range",
        "quantity.py",
        "<= int(text) < 2 ** (bits - 1):",
        "<= int(text) < 2 ** (bits - 1) - 1:",
    ),
    Mutant(
        "an offset is added where it comes off",
        "times.py",
        'timezone(-offset if match[8] == "-" else offset)',
        "timezone(offset)",
    ),
    Mutant(
        "the decimals of a second lose their place",
        "times.py",
        '(match[7] or "")[:6].ljust(6, "0")',
        '((match[7] or "")[:6] or "0")',
    ),
    Mutant(
        "a far time has no end",
        "times.py",
        "return min(max(_moment(text, _BEFORE, _AFTER), EARLIEST), LATEST)",
        "return _moment(text, 1, 9998)",
    ),
    Mutant(
        "a time is written in its own zone",
        "times.py",
        "moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')",
        "moment.replace(tzinfo=None).isoformat(timespec='seconds')",
    ),
    # nodestatus.py: addresses
    Mutant(
        "the host name comes first",
        "nodestatus.py",
        'return {"addresses": [*(NodeAddress(type=config.node_ip_type, address=str(ip)) for ip in ips), hostname]}',
        'return {"addresses": [hostname, *(NodeAddress(type=config.node_ip_type, address=str(ip)) for ip in ips)]}',
    ),
    Mutant("IPv6 is preferred", "nodestatus.py", "if facts.config.node_ips else 4", "if facts.config.node_ips else 6"),
    Mutant(
        "a link-local address is a node's",
        "nodestatus.py",
        "ip.is_multicast or ip.is_link_local or",
        "ip.is_multicast or",
    ),
    Mutant(
        "the addresses of a cloud controller are overwritten",
        "nodestatus.py",
        '    if config.registration.external_cloud_provider and facts.observed.get("addresses"):\n        return {}\n',
        "",
    ),
    Mutant(
        "an address of no interface is taken",
        "nodestatus.py",
        "if not any(ip in interface.addresses for interface in network.interfaces):",
        "if not network.interfaces:",
    ),
    # node.py, labels.py, nodestatus.py, config.py
    Mutant("the taints given are dropped", "node.py", "taints = [*registration.taints, *(", "taints = [*("),
    Mutant(
        "no taint for the cloud controller",
        "node.py",
        "*([_UNINITIALIZED] if registration.external_cloud_provider else [])]",
        "]",
    ),
    Mutant(
        "the beta label of the architecture is missing",
        "node.py",
        '        "beta.kubernetes.io/arch": arch,\n        **facts',
        "        **facts",
    ),
    Mutant(
        "the host name's label is missing", "node.py", '        "kubernetes.io/hostname": facts.config.node_name,\n', ""
    ),
    Mutant(
        "registration sets all labels again",
        "node.py",
        'in fresh["labels"].items() if key in _DEFAULT_LABELS}',
        'in fresh["labels"].items()}',
    ),
    Mutant(
        "registration overwrites capacity",
        "node.py",
        "return kept | {name: text for name, text in fresh.items() if _is_hugepages(name)}",
        "return kept | fresh",
    ),
    Mutant(
        "a taint has an empty value",
        "labels.py",
        "        if self.value:\n            return {",
        "        if True:\n            return {",
    ),
    Mutant("one taint may stand there twice", "labels.py", "for other in taints[:index]", "for other in taints[:0]"),
    Mutant(
        "labels of subdomains of kubernetes.io are not checked",
        "labels.py",
        "if _is_kubernetes(key) and not _is_allowed(key))",
        'if _namespace(key) == "kubernetes.io" and not _is_allowed(key))',
    ),
    Mutant(
        "a suffix of letters is a subdomain",
        "labels.py",
        'namespace.endswith("." + domain)',
        "namespace.endswith(domain)",
    ),
    Mutant(
        "a label may have 64 letters", "labels.py", "faults = [] if len(value) <= 63", "faults = [] if len(value) <= 64"
    ),
    Mutant("boot and machine change places", "nodestatus.py", '"bootID": host.boot_id', '"bootID": host.machine_id'),
    Mutant("the endpoint in lower case", "nodestatus.py", '{"Port": facts', '{"port": facts'),
    Mutant(
        "a CSINode of an earlier Node is ours",
        "node.py",
        'any(owner.get("uid") == owner_uid for',
        'any(owner.get("kind") == "Node" for',
    ),
    Mutant("allocatable is not told", "nodestatus.py", "    capacity,\n    allocatable,\n", "    capacity,\n"),
    Mutant(
        "three renewals per lease",
        "config.py",
        "return self.lease_duration_seconds * 0.25",
        "return self.lease_duration_seconds / 3",
    ),
    # patch.py
    Mutant("a heartbeat counts as a change", "patch.py", '- {"type", "lastHeartbeatTime"} for', '- {"type"} for'),
    Mutant("a change of labels is none", "patch.py", '        "metadata" in patch\n        or any(', "        any("),
    Mutant(
        "addresses are merged",
        "patch.py",
        "patch[name] = [*(new or []), _REPLACE]",
        "patch[name] = new or []",
    ),
    Mutant(
        "what is gone stays",
        "patch.py",
        "return changes | {name: None for name in old if name not in new}",
        "return changes",
    ),
    Mutant(
        "equal amounts in other words are a change",
        "patch.py",
        "if name in _QUANTITIES and old and new:",
        "if name in _QUANTITIES and not old:",
    ),
    # events.py
    Mutant(
        "Ready speaks when it first appears",
        "events.py",
        "(old is None and kind not in PRESSURE_TYPES)",
        "(old is None and kind in PRESSURE_TYPES)",
    ),
    Mutant("a reboot at the first start", "events.py", 'not in {"", host.boot_id}', "not in {host.boot_id}"),
    Mutant(
        "two events of a microsecond have one name",
        "events.py",
        "now.microsecond * 1000 + number % 1000",
        "now.microsecond * 1000",
    ),
    Mutant(
        "an event that repeats is a new one",
        "events.py",
        "        _store(record.sent, key, sent, most=_MOST_EVENTS)\n",
        "",
    ),
    Mutant("one event too many is sent", "events.py", "is_spam = tokens < 1", "is_spam = tokens < 0"),
    Mutant(
        "similar events from the eleventh on",
        "events.py",
        "if len(messages) < _MOST_SIMILAR:",
        "if len(messages) <= _MOST_SIMILAR:",
    ),
    # shutdown.py, usage.py, summary.py, metrics.py, access.py
    Mutant(
        "critical pods have the whole time again",
        "shutdown.py",
        "int(whole_seconds - critical_seconds)",
        "int(whole_seconds)",
    ),
    Mutant(
        "the page cache is in use",
        "usage.py",
        "return max(0, self.usage_bytes - self.inactive_file_bytes)",
        "return max(0, self.usage_bytes)",
    ),
    Mutant(
        "the rate of a CPU over too short a time",
        "usage.py",
        "now.at_seconds - samples[1].at_seconds >= _WINDOW_SECONDS",
        "now.at_seconds - samples[1].at_seconds >= 0",
    ),
    Mutant(
        "memory without a limit has some left",
        "summary.py",
        'limited = {} if memory.total_bytes > _UNLIMITED else {"availableBytes": memory.available_bytes}',
        'limited = {"availableBytes": memory.available_bytes}',
    ),
    Mutant(
        "sent and received change places",
        "summary.py",
        '"rxBytes": interface.rx_bytes',
        '"rxBytes": interface.tx_bytes',
    ),
    Mutant(
        "buckets without those below them",
        "metrics.py",
        '                total += count\n                yield Sample("_bucket", {**labels, "le": bound}, total)',
        '                total += count\n                yield Sample("_bucket", {**labels, "le": bound}, count)',
    ),
    Mutant(
        "a bound belongs to the next bucket",
        "metrics.py",
        "from bisect import bisect_left\n",
        "from bisect import bisect_right as bisect_left\n",
    ),
    Mutant("an answer is good a moment too long", "access.py", "if now >= expires_at:", "if now > expires_at:"),
)
