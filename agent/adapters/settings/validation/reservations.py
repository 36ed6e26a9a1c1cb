"""Checks of reserved resources, and of what enforces them."""

import re

from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation.fault import INVALID, Faults
from agent.core.quantity import Quantity
from agent.klog import quoted

_SYSTEM = ("system-reserved", "system-reserved-compressible")
_KUBE = ("kube-reserved", "kube-reserved-compressible")
_CPU_SET = re.compile(r"[0-9]+(?:-[0-9]+)?")
_USER_NAMESPACE_IDS = 65536


def enforcements(document: Document, _: FeatureGates) -> Faults:
    """Check enforceNodeAllocatable."""
    words, field = document["enforceNodeAllocatable"], "enforceNodeAllocatable (--enforce-node-allocatable)"
    for plain, compressible in (_SYSTEM, _KUBE):
        if plain in words and compressible in words:
            yield f'{INVALID}both "{plain}" and "{compressible}" cannot be specified together in {field}'
    for index, word in enumerate(words):
        if word in words[:index]:
            yield f"{INVALID}duplicated enforcements {quoted(word)} in {field}"
        else:
            yield from _enforcement(word, document, field)


def _enforcement(word: str, document: Document, field: str) -> Faults:
    for family, name in ((_SYSTEM, "system"), (_KUBE, "kube")):
        if word in family and not document[f"{name}ReservedCgroup"]:
            yield (
                f"{INVALID}{name}ReservedCgroup (--{name}-reserved-cgroup) must be specified when "
                f'"{family[0]}" or "{family[1]}" included in {field}'
            )
    if word == "none":
        if len(document["enforceNodeAllocatable"]) > 1:
            yield f'{INVALID}{field} may not contain additional enforcements when "none" is specified'
    elif word not in {"pods", *_SYSTEM, *_KUBE}:
        valid = ", ".join(quoted(name) for name in ("pods", *_SYSTEM, *_KUBE))
        yield f'{INVALID}option {quoted(word)} specified for {field}. Valid options are {valid} or "none"'
    elif not document["cgroupsPerQOS"]:
        yield (
            f"{INVALID}cgroupsPerQOS (--cgroups-per-qos) must be set to true when {quoted(word)} contained in {field}"
        )


def reserved_cpus(document: Document, _: FeatureGates) -> Faults:
    """Check the list of reserved CPUs, which excludes cgroups to reserve for."""
    cpus = document["reservedSystemCPUs"]
    if not cpus:
        return
    if document["systemReservedCgroup"] or document["kubeReservedCgroup"]:
        yield (
            f"{INVALID}can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup "
            "(--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)"
        )
    if invalid := [part for part in cpus.split(",") if not _is_range(part)]:
        yield (
            f"{INVALID}unable to parse reservedSystemCPUs (--reserved-cpus) {cpus}, "
            f"error: {quoted(invalid[0])} is no CPU and no range of CPUs"
        )


def _is_range(text: str) -> bool:
    first, _, last = text.partition("-")
    return bool(_CPU_SET.fullmatch(text)) and int(first) <= int(last or first)


def reserved_memory(document: Document, _: FeatureGates) -> Faults:
    """Check reserved memory by NUMA node."""
    seen: set[tuple[int, str]] = set()
    for reservation in document["reservedMemory"]:
        node = reservation["numaNode"]
        for name, amount in reservation["limits"].items():
            if name != "memory" and not name.startswith("hugepages-"):
                yield (
                    f"{INVALID}the limit type {quoted(name)} for NUMA node {node} is not supported, "
                    "only [memory hugepages-<HugePageSize>] is accepted"
                )
            if Quantity.parse(amount).nano == 0:
                yield f"{INVALID}reserved memory may not be zero for NUMA node {node} and resource {quoted(name)}"
            if (node, name) in seen:
                yield (
                    f"{INVALID}the reserved memory has a duplicate value for NUMA node {node} "
                    f"and resource {quoted(name)}"
                )
            seen.add((node, name))


def user_namespaces(document: Document, _: FeatureGates) -> Faults:
    """Check how many user IDs a pod gets."""
    ids = (document.get("userNamespaces") or {}).get("idsPerPod")
    if ids is None:
        return
    if ids < _USER_NAMESPACE_IDS:
        yield f"{INVALID}userNamespaces.idsPerPod must not be less than {_USER_NAMESPACE_IDS}"
    elif ids % _USER_NAMESPACE_IDS:
        yield f"{INVALID}userNamespaces.idsPerPod must be a multiple of {_USER_NAMESPACE_IDS}"
    elif ids > 2**32 - 1:
        yield f"{INVALID}userNamespaces.idsPerPod must not be more than {2**32 - 1}"
