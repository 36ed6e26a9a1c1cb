"""The status of a pod as a kubelet reports it, from the statuses of its containers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent.core.model import Object
from agent.core.pods.accessors import containers, ephemeral_containers, init_containers, on_host_network
from agent.core.pods.conditions import Statuses, conditions, conditions_of_others
from agent.core.pods.container import has_run
from agent.core.pods.resources import pod_limits, pod_requests, qos_class
from agent.core.pods.termination import KillRequest
from agent.core.quantity import format_amounts
from agent.core.times import timestamp

_DISRUPTION = "DisruptionTarget"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContext:
    """What the next status of a pod depends on beside the pod."""

    now: datetime
    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] | None  # None: the pod waits for addresses
    job_seconds: float
    kill_request: KillRequest | None = None


def pod_status(pod: Object, statuses: Statuses, phase: str, context: PodContext, *, has_sandbox: bool) -> Object:
    """Return the status of a pod in this phase; fields that a kubelet does not own stay unchanged."""
    now, old = timestamp(context.now), pod.get("status", {})
    own = {
        "phase": phase,
        "conditions": conditions(pod, statuses, phase, has_sandbox=has_sandbox, now=now),
        "hostIP": next(iter(context.host_ips), None),
        "hostIPs": _addresses(context.host_ips),
        "startTime": old.get("startTime") or now,
        "qosClass": qos_class(pod),
        "observedGeneration": pod["metadata"].get("generation"),
        "initContainerStatuses": [statuses[spec["name"]] for spec in init_containers(pod)],
        "containerStatuses": _in_order(containers(pod), statuses),
        "ephemeralContainerStatuses": _in_order(ephemeral_containers(pod), statuses),
    }
    kept = {name: value for name, value in old.items() if name not in own}
    reported = {name: value for name, value in own.items() if value not in (None, [])}
    return {**kept, **_network(pod, statuses, context), **_resources(pod), **reported}


def with_disruption(pod: Object, status: Object, message: str, now: datetime) -> Object:
    """Add the condition DisruptionTarget, before kubelet's own, to the status of a pod that the node has killed."""
    disruption = {
        "type": _DISRUPTION,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": "TerminationByKubelet",
        "message": message,
    }
    if generation := pod["metadata"].get("generation"):
        disruption["observedGeneration"] = generation
    others = [entry for entry in status["conditions"] if entry["type"] != _DISRUPTION]
    place = len([entry for entry in conditions_of_others(pod) if entry["type"] != _DISRUPTION])
    return {**status, "conditions": [*others[:place], disruption, *others[place:]]}


def _network(pod: Object, statuses: Statuses, context: PodContext) -> Object:
    """Return the pod's addresses, unless it has some: the node's own on the host network, otherwise its pod IPs."""
    if pod.get("status", {}).get("podIP"):
        return {}
    on_host = on_host_network(pod)
    ips = context.host_ips if on_host else context.pod_ips
    if not ips or not (on_host or any(map(has_run, statuses.values()))):
        return {}
    return {"podIP": ips[0], "podIPs": _addresses(ips)}


def _resources(pod: Object) -> Object:
    requests, limits = format_amounts(pod_requests(pod)), format_amounts(pod_limits(pod))
    parts = {"limits": limits, "requests": requests}
    reported: Object = {"resources": {name: amounts for name, amounts in parts.items() if amounts}}
    return reported | ({"allocatedResources": requests} if requests else {})


def _in_order(specs: Iterable[Object], statuses: Statuses) -> list[Object]:
    return [statuses[name] for name in sorted(spec["name"] for spec in specs)]


def _addresses(ips: Iterable[str]) -> list[Object]:
    return [{"ip": ip} for ip in ips]
