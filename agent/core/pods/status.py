"""The status of a pod as a kubelet tells it, from the statuses of its containers."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent.core.facts import timestamp
from agent.core.model import Object
from agent.core.pods.conditions import Statuses, conditions, foreign
from agent.core.pods.container import has_run
from agent.core.pods.ending import Order
from agent.core.pods.parts import containers, ephemeral_containers, init_containers, on_host_network
from agent.core.pods.resources import pod_limits, pod_requests, printed, quality

_DISRUPTION = "DisruptionTarget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a pod's life depends on beside the pod."""

    now: datetime
    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...] | None  # None: there are none to be had yet
    job_seconds: float
    order: Order | None = None


def pod_status(pod: Object, statuses: Statuses, phase: str, setting: Setting, *, has_sandbox: bool) -> Object:
    """What is told of a pod in this phase; fields that are not a kubelet's stay as they are."""
    now, old = timestamp(setting.now), pod.get("status", {})
    own = {
        "phase": phase,
        "conditions": conditions(pod, statuses, phase, has_sandbox=has_sandbox, now=now),
        "hostIP": next(iter(setting.host_ips), None),
        "hostIPs": _addresses(setting.host_ips),
        "startTime": old.get("startTime") or now,
        "qosClass": quality(pod),
        "observedGeneration": pod["metadata"].get("generation"),
        "initContainerStatuses": [statuses[spec["name"]] for spec in init_containers(pod)],
        "containerStatuses": _in_order(containers(pod), statuses),
        "ephemeralContainerStatuses": _in_order(ephemeral_containers(pod), statuses),
    }
    kept = {name: value for name, value in old.items() if name not in own}
    told = {name: value for name, value in own.items() if value not in (None, [])}
    return {**kept, **_network(pod, statuses, setting), **_resources(pod), **told}


def with_disruption(pod: Object, status: Object, message: str, now: datetime) -> Object:
    """The status of a pod that the node itself has ended; the condition stands before our own."""
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
    others = [one for one in status["conditions"] if one["type"] != _DISRUPTION]
    place = len([one for one in foreign(pod) if one["type"] != _DISRUPTION])
    return {**status, "conditions": [*others[:place], disruption, *others[place:]]}


def _network(pod: Object, statuses: Statuses, setting: Setting) -> Object:
    """The pod's addresses: once told they stay; those of the host network are the node's."""
    if pod.get("status", {}).get("podIP"):
        return {}
    on_host = on_host_network(pod)
    ips = setting.host_ips if on_host else setting.pod_ips
    if not ips or not (on_host or any(map(has_run, statuses.values()))):
        return {}
    return {"podIP": ips[0], "podIPs": _addresses(ips)}


def _resources(pod: Object) -> Object:
    requests, limits = printed(pod_requests(pod)), printed(pod_limits(pod))
    parts = {"limits": limits, "requests": requests}
    told: Object = {"resources": {name: amounts for name, amounts in parts.items() if amounts}}
    return told | ({"allocatedResources": requests} if requests else {})


def _in_order(specs: Iterable[Object], statuses: Statuses) -> list[Object]:
    return [statuses[name] for name in sorted(spec["name"] for spec in specs)]


def _addresses(ips: Iterable[str]) -> list[Object]:
    return [{"ip": ip} for ip in ips]
