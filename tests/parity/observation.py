"""What a cluster holds about a node: taken of a real kubelet and of fake-kubelet in the same way."""

import json
import time
from typing import Any

from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

_NOT_READY = "node.kubernetes.io/not-ready"
# Written at other moments, not by the kubelet, or of no meaning for a comparison
_EVENT_FIELDS = (
    "type",
    "message",
    "source",
    "involvedObject",
    "reportingComponent",
    "reportingInstance",
    "eventTime",
)


def observe(control_plane: ControlPlane, node_name: str) -> dict[str, Any]:
    """Node, CSINode, Lease and events, once the node is ready and known to be."""
    return {
        "node": eventually(lambda: _settled(control_plane, node_name), within=30, every=0.2),
        "csinode": control_plane.get("csinode", node_name),
        # A kubelet's first comes after a quarter of its duration.
        "lease": eventually(lambda: control_plane.get("lease", node_name, "kube-node-lease"), within=20),
        "events": eventually(lambda: _quiet_events(control_plane, node_name), within=10),
    }


def reboot(control_plane: ControlPlane, node_name: str) -> None:
    """Leave the Node of a kubelet that has ended as if that had run before the machine was rebooted."""
    unheard = [{"type": "Ready", "lastHeartbeatTime": None}]
    patch = json.dumps({"status": {"nodeInfo": {"bootID": "another"}, "conditions": unheard}})
    control_plane.kubectl("patch", "node", node_name, "--subresource=status", "--patch", patch)
    _forget_events(control_plane, node_name)


def forget(control_plane: ControlPlane, node_name: str) -> None:
    """Remove every trace of a node, so that the next one of this name starts afresh."""
    control_plane.kubectl("delete", "node", node_name, "--ignore-not-found")
    _forget_events(control_plane, node_name)
    for kind, namespace in (("csinode", ()), ("lease", ("--namespace", "kube-node-lease"))):
        control_plane.kubectl("delete", kind, node_name, *namespace, "--ignore-not-found")


def _forget_events(control_plane: ControlPlane, node_name: str) -> None:
    selector = f"involvedObject.name={node_name}"
    control_plane.kubectl("delete", "events", "--field-selector", selector, "--ignore-not-found")


def _settled(control_plane: ControlPlane, node_name: str) -> dict[str, Any] | None:
    node = control_plane.get("node", node_name)
    heard = [condition for condition in node["status"].get("conditions", []) if condition["lastHeartbeatTime"]]
    conditions = {condition["type"]: condition["status"] for condition in heard}
    tainted = any(taint["key"] == _NOT_READY for taint in node["spec"].get("taints", []))
    initialised = "node.alpha.kubernetes.io/ttl" in node["metadata"].get("annotations", {})
    assigned = "podCIDR" in node["spec"]
    return node if conditions.get("Ready") == "True" and not tainted and initialised and assigned else None


def _quiet_events(control_plane: ControlPlane, node_name: str) -> dict[str, dict[str, Any]] | None:
    """The events, once no more come: their delivery has a queue of its own."""
    before = _events(control_plane, node_name)
    time.sleep(0.5)
    after = _events(control_plane, node_name)
    return after if before == after else None


def _events(control_plane: ControlPlane, node_name: str) -> dict[str, dict[str, Any]]:
    """What the kubelet told, by reason."""
    selector = f"involvedObject.name={node_name}"
    found = json.loads(control_plane.kubectl("get", "events", "--field-selector", selector, "--output=json"))["items"]
    ours = [event for event in found if event["source"].get("component") == "kubelet"]
    return {event["reason"]: {name: event.get(name) for name in _EVENT_FIELDS} for event in ours}
