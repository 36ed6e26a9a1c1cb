"""Hosts the nodes of a fleet in a process, and follows changes of their plans."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agent.core.fleet import Difference, NodePlan, difference
from agent.core.fleet_view import DELETED, NOT_READY, READY, REGISTERING, UNKNOWN, WAITING
from agent.core.model import HostSnapshot
from agent.fleet.serving import NoServers, Placement
from agent.fleet.starter import Starter
from agent.node import Node, NodeClients
from agent.process import Process

# A kubelet's words while no network plugin is set up
_NEVER_READY = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
    "message:Network plugin returns error: cni plugin not initialized"
)
_SETTLE_SECONDS = 30.0  # nodes that were ready before a restart stay so while hundreds wait for their turn
_STATES = {"True": READY, "False": NOT_READY, "Unknown": UNKNOWN}


class HostedFleet:
    """The nodes of a fleet in this process."""

    def __init__(
        self, process: Process, clients: NodeClients, starter: Starter, placement: Placement | None = None
    ) -> None:
        self._process = process
        self._clients = clients
        self._starter = starter
        self._placement = placement or NoServers()
        self._plans: dict[str, NodePlan] = {}

    @property
    def plans(self) -> Iterable[NodePlan]:
        """The plans of all nodes."""
        return self._plans.values()

    @property
    def nodes(self) -> Iterator[Node]:
        """The nodes that were started or wait for that; those that never register are not among them."""
        return iter(self._process.nodes.values())

    def node(self, name: str) -> Node | None:
        """Return the node with this name if it is hosted."""
        return self._process.nodes.get(name)

    def machine(self, name: str) -> HostSnapshot:
        """Return the machine of a node."""
        return self._plans[name].machine

    def check(self, count: int) -> None:
        """Raise StartError if there is no place for so many nodes."""
        self._placement.check(count)

    def add(self, plan: NodePlan) -> None:
        """Host a node, and start it when it is its turn. Raises StartError where there is no place for it."""
        if plan.startup.registers:
            self._host(plan)
        self._plans[plan.name] = plan

    def apply(self, wanted: Iterable[NodePlan]) -> Difference:
        """Host these nodes instead, and return what changed; the caller deletes the objects of those removed.

        Adopted nodes stay.
        """
        ours = (plan for plan in self._plans.values() if not plan.config.registration.adopted)
        changes = difference(ours, wanted)
        for plan in (*changes.removed, *changes.changed):
            self.remove(plan.name)
        for plan in (*changes.changed, *changes.added):
            self.add(plan)
        return changes

    def states(self) -> Mapping[str, int]:
        """Return how many nodes are in which state."""
        states = Counter(_state(node) for node in self.nodes)
        waiting = self._starter.waiting
        states[REGISTERING] -= waiting
        states[WAITING] = len(self._plans) - len(self._process.nodes) + waiting
        return +states

    def remove(self, name: str) -> None:
        """Do not host a node any longer; its objects stay as they are."""
        plan = self._plans.pop(name)
        if not plan.startup.registers:
            return
        if node := self.node(name):  # or it was deleted, and --on-node-deleted=exit
            self._starter.discard(node)
            self._process.remove(name)
        self._placement.withdraw(name)

    def _host(self, plan: NodePlan) -> None:
        placed = self._placement.place(plan)
        node = self._process.add(placed.config, self._clients, placed.machine)
        node.state.settle_seconds = _SETTLE_SECONDS
        node.state.asks_less = True
        if not plan.startup.becomes_ready:
            node.state.hold_back(_NEVER_READY)
        self._starter.add(node, plan.startup.delay_seconds)


def _state(node: Node) -> str:
    if node.state.uid is None:
        return DELETED if node.state.is_deleted else REGISTERING
    return _STATES.get(node.state.ready_status, NOT_READY)
