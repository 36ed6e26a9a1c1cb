"""What a cluster shows of the same pods on two nodes, in a form that can be compared."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cluster.api import NAMESPACES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubelet_races import POD_EVENT_REASONS, SAME_EITHER_WAY
from tests.cluster.process import Process
from tests.pods.specs import PodCase

Pod = dict[str, Any]
_SPACE = re.compile(r"\s*")
_TOKEN_VOLUME = re.compile(r"kube-api-access-\w+")
_NOT_OURS = {"MissingClusterDNS"}  # about resolv.conf, which nobody reads where nothing runs
_EVENT_FIELDS = ("type", "reason", "message", "count", "reportingComponent", "eventTime")


def manifest(case: PodCase, name: str, namespace: str, node_name: str) -> Pod:
    """The pod of a case, bound to a node already."""
    metadata = {"name": name, "namespace": namespace, "annotations": case.annotations}
    spec = {"automountServiceAccountToken": False, **case.spec, "nodeName": node_name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def comparable(pod: Pod) -> Pod:
    """The status of a pod, without what is random and what only the fake runtime makes up."""
    status: Pod = json.loads(_TOKEN_VOLUME.sub("kube-api-access", json.dumps(pod["status"])))
    for one in (*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())):
        for amounts in one.get("resources", {}).values():
            if amounts.get("memory") == "0":  # a limit that nobody asked for: the fake runtime tells it as none
                del amounts["memory"]
    return {"status": status}


def events_by_pod(plane: ControlPlane, namespace: str) -> dict[str, list[Pod]]:
    """What was told about each pod, in the order of the alphabet."""
    told: dict[str, list[Pod]] = {}
    left_out = _NOT_OURS | POD_EVENT_REASONS.keys()
    for event in plane.api.items(f"{NAMESPACES}/{namespace}/events"):
        about = event["involvedObject"]
        if about["kind"] != "Pod" or event["source"].get("component") != "kubelet" or event["reason"] in left_out:
            continue
        kept = {name: event.get(name) for name in _EVENT_FIELDS} | {"path": about.get("fieldPath", "")}
        kept["message"] = kept["message"].replace(about["uid"], "UID").replace(namespace, "NAMESPACE")
        if event["reason"] in SAME_EITHER_WAY:
            kept["message"] = "one way or the other"
        told.setdefault(about["name"], []).append(kept)
    return {name: sorted(events, key=lambda one: (one["reason"], one["path"])) for name, events in told.items()}


class LastSeen:
    """Remembers the last state of every pod of a namespace, also of those that are gone."""

    def __init__(self, plane: ControlPlane, namespace: str, log: Path) -> None:
        flags = [f"--kubeconfig={plane.admin_kubeconfig}", f"--namespace={namespace}", "--output=json"]
        words = [str(plane.kubectl_path), "get", "pods", "--watch", "--output-watch-events", *flags]
        self._kubectl = Process(f"watch {namespace}", words, log=log, env={"KUBERC": "off"})
        self._kubectl.start()

    def stop(self) -> None:
        self._kubectl.kill()

    def deleted(self) -> dict[str, Pod]:
        """The pods that are gone, as they were at last."""
        return {pod["metadata"]["name"]: pod for kind, pod in self._changes() if kind == "DELETED"}

    def _changes(self) -> Iterator[tuple[str, Pod]]:
        decoder, text = json.JSONDecoder(), self._kubectl.log_text()
        position = 0
        while position < len(text):
            try:
                change, position = decoder.raw_decode(text, position)
            except ValueError:
                return  # the last one is not whole yet
            yield change["type"], change["object"]
            position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too
