"""What a cluster holds about a node: taken of a real kubelet and of fake-kubelet in the same way."""

from collections.abc import Mapping
from typing import Any

from tests.cluster.api import CSINODES, EVENTS, LEASES, NODES, STRATEGIC
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubelet_races import LAST_EVENT
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually

# Taints that the node-lifecycle controller takes away when it has noticed: `kubectl cordon` has an end, too.
_PASSING = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"}
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


class Observed:
    """One node, looked at in two steps, so that several nodes can take them together."""

    def __init__(self, control_plane: ControlPlane, node_name: str) -> None:
        self._view = NodeView(control_plane, node_name)
        self._api, self.name = control_plane.api, node_name

    def create(self, labels: Mapping[str, str], status: Mapping[str, Any]) -> None:
        """Make the Node, as somebody else than its kubelet would."""
        metadata = {"name": self.name, "labels": labels}
        self._api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    def objects(self) -> dict[str, Any]:
        """Node, CSINode and Lease, once the node is ready and known to be; then it is cordoned."""
        node = eventually(self._settled)
        conditions = node["status"]["conditions"]
        node["status"]["conditions"] = {condition["type"]: condition for condition in conditions}
        found = {
            "node": node,
            "order of conditions": [condition["type"] for condition in conditions],
            "csinode": eventually(self._view.csinode),
            "lease": self._view.owned_lease(),
        }
        self._cordon(True)
        return found

    def events(self) -> dict[str, dict[str, Any]]:
        """What was told about the node up to the cordon, by reason."""
        return eventually(self._events_to_the_last)

    def reboot(self) -> None:
        """Leave the Node of a kubelet that has ended as if that had run before the machine was rebooted."""
        unheard = [{"type": "Ready", "lastHeartbeatTime": None}]
        patch = {"status": {"nodeInfo": {"bootID": "another"}, "conditions": unheard}}
        self._api.patch(f"{NODES}/{self.name}/status", patch, STRATEGIC)
        self._cordon(False)
        self._forget_events()

    def forget(self) -> None:
        """Remove every trace of a node, so that the next one of this name starts afresh."""
        for kind in (NODES, CSINODES, LEASES):
            self._api.delete(f"{kind}/{self.name}")
        self._forget_events()

    def _cordon(self, is_cordoned: bool) -> None:
        self._api.patch(f"{NODES}/{self.name}", {"spec": {"unschedulable": is_cordoned or None}})

    def _forget_events(self) -> None:
        self._api.delete(f"{EVENTS}?fieldSelector=involvedObject.name={self.name}")

    def _settled(self) -> dict[str, Any] | None:
        node = self._view.node()
        heard = [condition for condition in node["status"].get("conditions", []) if condition["lastHeartbeatTime"]]
        conditions = {condition["type"]: condition["status"] for condition in heard}
        tainted = any(taint["key"] in _PASSING for taint in node["spec"].get("taints", []))
        initialised = (  # by the TTL, the node-lifecycle and the node-ipam controller
            "node.alpha.kubernetes.io/ttl" in node["metadata"].get("annotations", {})
            and "beta.kubernetes.io/arch" in node["metadata"].get("labels", {})
            and "podCIDR" in node["spec"]
        )
        return node if conditions.get("Ready") == "True" and not tainted and initialised else None

    def _events_to_the_last(self) -> dict[str, dict[str, Any]] | None:
        ours = [event for event in self._view.events() if event["source"].get("component") == "kubelet"]
        told = {event["reason"]: {name: event.get(name) for name in _EVENT_FIELDS} for event in ours}
        return told if LAST_EVENT in told else None
