"""Mistakes about certificates, tokens, callers of the kubelet's API, and its paths."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    # csr.py, x509.py
    Mutant(
        "a client certificate for a server",
        "csr.py",
        '"server auth" if signer == SERVING_SIGNER else "client auth"',
        '"server auth"',
    ),
    Mutant(
        "an elliptic key enciphers keys", "csr.py", '*(["key encipherment"] if is_rsa else [])', '"key encipherment"'
    ),
    Mutant(
        "a certificate without the group of nodes",
        "csr.py",
        "organizations: tuple[str, ...] = (_GROUP,)",
        "organizations: tuple[str, ...] = ()",
    ),
    Mutant("a serving certificate without DNS names", "csr.py", "        dns_names=tuple(sorted(dns_names)),\n", ""),
    Mutant(
        "a host name that is an address is a DNS name",
        "csr.py",
        'ip = _ip(text) if kind in _IP_KINDS or kind == "Hostname" else ""',
        'ip = _ip(text) if kind in _IP_KINDS else ""',
    ),
    Mutant("a certificate lasts to half its life", "csr.py", "(0.7 + 0.2 * rand)", "(0.5 + 0.2 * rand)"),
    Mutant(
        "a denied request stays open",
        "csr.py",
        '(("Denied", "is denied"), ("Failed", "failed"))',
        '(("Failed", "failed"),)',
    ),
    Mutant(
        "a certificate before its approval",
        "csr.py",
        'if "Approved" in conditions and status.get("certificate"):',
        'if status.get("certificate"):',
    ),
    Mutant(
        "a certificate for fewer addresses will do",
        "csr.py",
        "set(template.ip_addresses) <= set(certificate.ip_addresses)",
        "set(template.ip_addresses) >= set(certificate.ip_addresses)",
    ),
    Mutant(
        "a certificate for another key will do",
        "csr.py",
        '    if leaf.public_key != public_key:\n        return "the signed certificate is for another key"\n',
        "",
    ),
    Mutant(
        "the name of a request is another after a restart",
        "csr.py",
        'digest.update(_unpadded(item) + b"|")',
        "digest.update(_unpadded(item))",
    ),
    Mutant("years from 1970 on", "x509.py", 'if text[:2] >= "50" else', 'if text[:2] >= "70" else'),
    Mutant("lengths in a certificate have one byte", "x509.py", "digits = length & 0x7F", "digits = 1"),
    # discovery.py
    Mutant(
        "the beginning of a signature will do",
        "discovery.py",
        "return hmac.compare_digest(digest, expected)",
        "return expected.startswith(digest)",
    ),
    Mutant(
        "without pins any authority will do",
        "discovery.py",
        "if not pins.intersection(hashes):",
        "if pins and not pins.intersection(hashes):",
    ),
    Mutant("a pin in upper case never fits", "discovery.py", "return value.lower()", "return value"),
    # access.py, routing.py
    Mutant(
        "everybody is authenticated",
        "access.py",
        'ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))',
        'ANONYMOUS = User("system:anonymous", ("system:authenticated",))',
    ),
    Mutant(
        "a caller lacks the group of all",
        "access.py",
        "return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)",
        "return groups",
    ),
    Mutant("metrics ask for proxy", "access.py", '    "/metrics": "metrics",\n', ""),
    Mutant(
        "what begins alike is below",
        "access.py",
        'path == root or path.startswith(f"{root}/")',
        "path.startswith(root)",
    ),
    Mutant(
        "a review that says both is a yes",
        "access.py",
        "if allowed and denied:",
        "if denied and not allowed:",
    ),
    Mutant("the first tree counts", "routing.py", "key=len, default", "key=lambda prefix: -len(prefix), default"),
    Mutant(
        "a route takes more parts than it has",
        "routing.py",
        "(len(parts) > len(wanted) and not takes_rest)",
        "(len(parts) > len(wanted) + 1 and not takes_rest)",
    ),
    # view.py, container_log.py
    Mutant("NetworkUnavailable is good when it is True", "node_view.py", ' or kind == "NetworkUnavailable"', ""),
    Mutant(
        "the tail of a log is its head",
        "container_log.py",
        "lines[len(lines) - min(options.tail_lines, len(lines)) :]",
        "lines[: options.tail_lines]",
    ),
    Mutant(
        "the previous log is the current one",
        "container_log.py",
        '        return last\n    if "running" in state',
        '        return state\n    if "running" in state',
    ),
)
