"""Mistakes about pods: admission, phase, conditions, containers, resources, and how they end."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    # status.py
    Mutant("a pod that failed has succeeded", "pods/status.py", "return SUCCEEDED if all(", "return SUCCEEDED if any("),
    Mutant(
        "a pod that runs again is over",
        "pods/status.py",
        "    if not is_over and any(should_restart",
        "    if is_over and any(should_restart",
    ),
    Mutant(
        "a failed init container is waited for",
        "pods/status.py",
        'if any(codes[spec["name"]] and not should_restart(pod',
        'if any(codes[spec["name"]] and should_restart(pod',
    ),
    Mutant(
        "readiness gates do not count",
        "pods/status.py",
        '"Ready": _ready(pod) if containers_ready[0] else containers_ready',
        '"Ready": containers_ready',
    ),
    Mutant(
        "a completed pod has containers not ready",
        "pods/status.py",
        '"PodCompleted" if phase == SUCCEEDED else "PodFailed"',
        '"ContainersNotReady"',
    ),
    Mutant(
        "a pod's condition has always changed just now",
        "pods/status.py",
        'old["lastTransitionTime"] if old and is_same else now',
        "now",
    ),
    Mutant("the pod's start moves", "pods/status.py", 'old.get("startTime") or now', "now"),
    Mutant(
        "a pod on the host network has an address of its own",
        "pods/status.py",
        "context.host_ips if on_host_network(pod) else context.pod_ips",
        "context.pod_ips",
    ),
    Mutant(
        "a pod's addresses change",
        "pods/status.py",
        'if not ips or pod.get("status", {}).get("podIP"):',
        "if not ips:",
    ),
    # container.py, lifecycle.py, termination.py
    Mutant(
        "back-off without an end",
        "pods/container.py",
        "float(min(_FIRST_BACK_OFF_SECONDS * 2**doublings, _MOST_BACK_OFF_SECONDS))",
        "float(_FIRST_BACK_OFF_SECONDS * 2**doublings)",
    ),
    Mutant(
        "back-off the first time",
        "pods/container.py",
        "if not _restarts(status) or not began or not finished_at:",
        "if not began or not finished_at:",
    ),
    Mutant(
        "a long run is not forgiven", "pods/container.py", "_FORGIVEN_SECONDS = 600.0", "_FORGIVEN_SECONDS = 600000.0"
    ),
    Mutant(
        "a restart is not counted",
        "pods/container.py",
        "min(_restarts(before) + 1, _MOST_RESTARTS) if ended else _restarts(before)",
        "_restarts(before)",
    ),
    Mutant("a failure is completed", "pods/container.py", '"Error" if exit_code else "Completed"', '"Completed"'),
    Mutant(
        "the last state is forgotten",
        "pods/container.py",
        '"lastState": {"terminated": ended} if ended else {}',
        '"lastState": {}',
    ),
    Mutant(
        "on failure means always",
        "pods/container.py",
        '(policy == "OnFailure" and exit_code != 0)',
        'policy == "OnFailure"',
    ),
    Mutant(
        "a container is ready before its probe",
        "pods/lifecycle.py",
        'is_ready = is_up and began is not None and self._is_due(_probed_at(began, spec, "readinessProbe"))',
        "is_ready = is_up",
    ),
    Mutant(
        "init containers run together",
        "pods/lifecycle.py",
        "            if not was_initialized and is_waited_for(spec, self.statuses):\n                return\n",
        "",
    ),
    Mutant(
        "sidecars outlive the pod",
        "pods/lifecycle.py",
        "            self._end(filter(is_sidecar, init_containers(self.pod)))\n",
        "            pass\n",
    ),
    Mutant(
        "a terminal pod lives on",
        "pods/lifecycle.py",
        '    if is_terminal(pod):\n        return NextStatus(pod["status"], None)\n',
        "",
    ),
    Mutant(
        "an exit code is ignored",
        "pods/termination.py",
        "default_code if code is None else code)",
        "default_code)",
    ),
    Mutant(
        "the exit code of a plain command is ignored",
        "pods/termination.py",
        "default, default_code = command.run_seconds, command.exit_code",
        "default = command.run_seconds",
    ),
    Mutant(
        "a container has used CPU since its pod has started",
        "pods/stats.py",
        " - usage.cpu.sum_until(began_ms - pod_ms)",
        "",
    ),
    # resources.py
    Mutant(
        "Guaranteed without limits",
        "pods/resources.py",
        'return "Guaranteed" if limited and equal else "Burstable"',
        'return "Guaranteed" if equal else "Burstable"',
    ),
    Mutant("limits alone are BestEffort", "pods/resources.py", "if not requests and not limits:", "if not requests:"),
    Mutant(
        "init containers add up",
        "pods/resources.py",
        "        most = _most(most, own)\n",
        "        most = _added(most, own)\n",
    ),
    Mutant(
        "overhead is forgotten",
        "pods/resources.py",
        'return _added(total | _pod_level(pod, "requests"), _parsed(pod["spec"].get("overhead")))',
        'return total | _pod_level(pod, "requests")',
    ),
    Mutant(
        "CPUs are counted whole",
        "pods/resources.py",
        'return amount.millis if name == "cpu" else amount.value',
        "return amount.value",
    ),
    # admission.py
    Mutant(
        "memory pressure refuses everybody",
        "pods/admission.py",
        'qos_class(pod) != "BestEffort" or tolerates',
        'qos_class(pod) == "Guaranteed" or tolerates',
    ),
    Mutant(
        "a critical pod is refused under pressure",
        "pods/admission.py",
        "if not pressure or is_critical(pod):",
        "if not pressure:",
    ),
    Mutant(
        "one pod too many",
        "pods/admission.py",
        "if len(context.others) + 1 > allocatable",
        "if len(context.others) > allocatable",
    ),
    Mutant(
        "the last free byte is not given",
        "pods/admission.py",
        "asked[name] > allocatable.get(name, 0) - used:",
        "asked[name] >= allocatable.get(name, 0) - used:",
    ),
    Mutant(
        "NoSchedule keeps a bound pod out",
        "pods/admission.py",
        'if taint["effect"] == "NoExecute" and not tolerates',
        'if taint["effect"] != "PreferNoSchedule" and not tolerates',
    ),
    Mutant(
        "a port at any address is free at one",
        "pods/admission.py",
        "not used.isdisjoint({address, _ANY_ADDRESS})",
        "address in used",
    ),
    Mutant(
        "a node that goes down takes pods",
        "pods/admission.py",
        "if SHUTTING_DOWN not in problems:",
        "if SHUTTING_DOWN in problems:",
    ),
    Mutant(
        "affinity terms are all required",
        "pods/admission.py",
        "return required is None or any(matches_term",
        "return required is None or all(matches_term",
    ),
    Mutant("an empty term matches", "pods/admission.py", "return bool(expressions or fields) and (", "return ("),
    Mutant(
        "In means NotIn",
        "pods/admission.py",
        "            return value in values\n",
        "            return value not in values\n",
    ),
    Mutant(
        "NotIn needs the label",
        "pods/admission.py",
        "            return value not in values\n",
        "            return value is not None and value not in values\n",
    ),
    Mutant(
        "a toleration without an effect fits none",
        "pods/admission.py",
        'if toleration.get("effect") and toleration["effect"] != taint["effect"]:',
        'if toleration.get("effect") != taint["effect"]:',
    ),
    Mutant(
        "a toleration's value does not count",
        "pods/admission.py",
        'operator == "Exists" or (operator == "Equal" and value == taint.get("value", ""))',
        'operator in {"Exists", "Equal"}',
    ),
    Mutant(
        "Guaranteed pods go first",
        "pods/admission.py",
        "return [pod for pod, _ in (*from_effort, *from_burst, *from_guaranteed)]",
        "return [pod for pod, _ in (*from_guaranteed, *from_burst, *from_effort)]",
    ),
    Mutant(
        "critical pods make room for each other",
        "pods/admission.py",
        "pod.priority < by.priority",
        "pod.priority <= by.priority",
    ),
    Mutant(
        "preemption takes more pods than it must",
        "pods/admission.py",
        "        missing = _left(missing, [best])\n",
        "",
    ),
    # termination.py, eviction.py, accessors.py, and shutdown.py of the core
    Mutant(
        "a deadline is no failure",
        "pods/termination.py",
        "._replace(reason=_DEADLINE[0], message=_DEADLINE[1])",
        "",
    ),
    Mutant(
        "the last reason to end counts",
        "pods/termination.py",
        "return min(ends, key=lambda end: end.at, default=None)",
        "return max(ends, key=lambda end: end.at, default=None)",
    ),
    Mutant(
        "a grace period of zero is none", "pods/termination.py", "max(grace_seconds, _LEAST_SECONDS)", "grace_seconds"
    ),
    Mutant(
        "an evicted pod has succeeded",
        "pods/termination.py",
        "return end._replace(exit_code=_KILLED, reason",
        "return end._replace(reason",
    ),
    Mutant(
        "important pods are evicted first",
        "pods/eviction.py",
        "(pod.priority, pod.request.amounts.get(resource, 0))",
        "(-pod.priority, pod.request.amounts.get(resource, 0))",
    ),
    Mutant("critical pods are evicted", "pods/eviction.py", "(pod for pod in pods if not pod.is_critical)", "pods"),
    Mutant(
        "disks are more urgent than memory",
        "pods/eviction.py",
        'resource_of(entry) != "memory"',
        'resource_of(entry) == "memory"',
    ),
    Mutant(
        "a hard threshold waits for the pod",
        "pods/eviction.py",
        "if not threshold.grace_seconds:",
        "if threshold.grace_seconds:",
    ),
    Mutant(
        "a pod at a period's priority belongs below it",
        "shutdown.py",
        "period.priority <= pod.priority",
        "period.priority < pod.priority",
    ),
    Mutant(
        "mirror pods are not critical",
        "pods/accessors.py",
        "return is_mirror(pod) or priority(pod) >= CRITICAL_PRIORITY",
        "return priority(pod) >= CRITICAL_PRIORITY",
    ),
    Mutant(
        "a deletion is as old as its deadline",
        "pods/accessors.py",
        " - timedelta(seconds=deletion_grace_seconds(pod))",
        "",
    ),
    # ip_allocator.py, static.py, info.py, events.py, and patch.py of the core
    Mutant(
        "the gateway's address is a pod's",
        "pods/ip_allocator.py",
        "ip = str(network[place + 2])",
        "ip = str(network[place + 1])",
    ),
    Mutant(
        "an address is never freed",
        "pods/ip_allocator.py",
        "self._taken.difference_update(self._of.pop(uid, ()))",
        "self._of.pop(uid, ())",
    ),
    Mutant("a mirror pod has no owner", "pods/static.py", '            "ownerReferences": [owner],\n', ""),
    Mutant(
        "a mirror pod can be driven out",
        "pods/static.py",
        '[*(spec.get("tolerations") or ()), _TOLERATE_NO_EXECUTE]',
        '[*(spec.get("tolerations") or ())]',
    ),
    Mutant(
        "a changed manifest has its old hash",
        "pods/static.py",
        "json.dumps([manifest.pod, f",
        'json.dumps([manifest.pod["metadata"], f',
    ),
    Mutant(
        "a start is told with each status",
        "pods/events.py",
        'if after.get("containerID") != before.get("containerID"):',
        'if after.get("containerID"):',
    ),
    Mutant(
        "back-off is no warning",
        "pods/events.py",
        'yield PodEvent("BackOff", message, "Warning")',
        'yield PodEvent("BackOff", message)',
    ),
    Mutant(
        "a status for another pod of the name",
        "patch.py",
        '{"metadata": {"uid": pod["metadata"]["uid"]}, "status": changes}',
        '{"status": changes}',
    ),
)
