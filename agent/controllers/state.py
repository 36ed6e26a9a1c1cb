"""What the controllers of one node know in common."""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from agent.controllers.host_monitor import Machine
from agent.controllers.startup import StartupLatency
from agent.core.config import NodeConfig
from agent.core.model import NodeObject, NodeStatus, is_newer
from agent.core.nodestatus import Facts, find_condition
from agent.ports import Clock

log = logging.getLogger(__name__)


_SETTLE_SECONDS = 3.0  # a healthy API server shows a CSINode much sooner

NodeDecoder = Callable[[bytes], NodeObject]
"""Decodes a cached Node; those that were asked for last may be kept decoded."""


class NodeState:
    """The Node as the API server shows it, whether it is ours, and what keeps it from being ready.

    It is the store of a reflector, and costs no request: what a kubelet has in its informer.
    """

    def __init__(
        self, config: NodeConfig, machine: Machine, startup: StartupLatency, decoder: NodeDecoder, clock: Clock
    ) -> None:
        self.config = config
        self.name = config.node_name
        self.pressure = machine.pressure
        self.startup = startup
        self.shown_uid: str | None = None
        """The UID of the cached Node, ours or not."""
        self.is_synced = False
        """Whether the API server has listed the Node, or that there is none: before, no Node means nothing."""
        self.uid: str | None = None
        """The UID of our living Node, as far as we know."""
        self.ready_status = ""
        """The status of its condition Ready as the API server last showed it; empty while there is none."""
        self._packed = b""  # the Node as JSON: a third of the memory that the decoded object takes
        self._version = ""
        self._decoder = decoder
        self._machine = machine
        self._clock = clock
        self._adopts = not config.registration.register_node  # whether a Node that others create is ours
        self._deleted_uid: str | None = None  # of the Node that was ours last, while there is no other
        self.asks_less = False
        """Whether nothing is read that is known or unlikely to be there, as thousands of nodes want it that start
        together: a Node that the watch has shown is taken as it is. A kubelet always asks."""
        self.is_new = False
        """Whether nothing that belongs to the Node is likely to be there already, so that it is created unasked."""
        self.is_held_back = False
        """Whether the node is never to become ready."""
        self.settle_seconds = _SETTLE_SECONDS
        """How long after registration the first report waits for the CSINode."""
        self._problems: dict[str, str] = {}
        self._updated: asyncio.Event | None = None  # while somebody waits for it
        self._on_replaced: list[Callable[[], None]] = []
        self._on_changed: list[Callable[[], None]] = []

    def on_replaced(self, listener: Callable[[], None]) -> None:
        """Call this whenever our Node was registered, deleted or replaced by another."""
        self._on_replaced.append(listener)

    def on_changed(self, listener: Callable[[], None]) -> None:
        """Call this whenever something has changed that the status depends on."""
        self._on_changed.append(listener)
        self.pressure.subscribe(listener)

    def stop(self) -> None:
        """Call nobody any more when the host changes."""
        for listener in self._on_changed:
            self.pressure.unsubscribe(listener)

    async def facts(self, observed_status: NodeStatus) -> Facts:
        """Return everything that the next status depends on."""
        return Facts(
            config=self.config,
            host=await self._machine.snapshot(),
            observed=observed_status,
            pressure=self.pressure.conditions,
            problems=self.problems,
            now=self._clock.now(),
        )

    async def inputs(self) -> tuple[object, ...]:
        """Return all that the status depends on beside settings and time: equal inputs make an equal status."""
        return self._version, await self._machine.snapshot(), self.pressure.conditions, self.problems

    # --- what keeps the node from being ready

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the node is not ready; empty when it is."""
        return tuple(self._problems.values())

    def block(self, subject: str, problem: str) -> None:
        """Keep the node from being ready because of this."""
        if self._problems.get(subject) != problem:
            self._problems[subject] = problem
            self._notify(self._on_changed)

    def hold_back(self, problem: str) -> None:
        """Never let the node become ready, because of this."""
        self.is_held_back = True
        self.block("", problem)

    def clear(self, subject: str) -> None:
        """Do not keep the node from being ready because of this any more."""
        if self._problems.pop(subject, None) is not None:
            self._notify(self._on_changed)

    # --- the Node at the API server, as a reflector or an answer shows it

    def node(self) -> NodeObject | None:
        """Return the Node as the API server last showed it; None while there is none of this name."""
        return self._decoder(self._packed) if self._packed else None

    def reset(self, objects: Sequence[NodeObject], version: str) -> None:
        """Take in a list of all Nodes of this name at a version."""
        self.is_synced = True
        if objects:
            self._drop()  # a list is the truth, whatever versions were shown before
            self.put(objects[0])
        elif not self._packed or not is_newer(self._version, version):
            self.forget()

    def put(self, node: NodeObject) -> None:
        """Take in the Node; an older state than the cached one is ignored."""
        uid, version, before = node["metadata"]["uid"], node["metadata"]["resourceVersion"], self._version
        if self.shown_uid == uid and is_newer(before, version):
            return
        self.shown_uid, self._version, self._packed = uid, version, msgspec.json.encode(node)
        if self._updated:
            self._updated.set()
        ready = find_condition(node.get("status", {}), "Ready")
        self.ready_status = ready["status"] if ready else ""
        self.on_uid_shown(uid)
        if self.ready_status == "Unknown" and before != version:
            self._notify(self._on_changed)  # the cluster gave the node up: better than kubelet, we report at once

    def remove(self, node: NodeObject) -> None:
        """Take in that this Node was deleted."""
        if self.shown_uid in {None, node["metadata"]["uid"]}:
            self.forget()

    def forget(self) -> None:
        """Take in that there is no Node of this name."""
        self._drop()
        if self.uid is not None:
            self._lose(self.uid)

    def on_uid_shown(self, uid: str) -> None:
        """Take in that the Node of this name has this UID; with another UID than ours it is another Node."""
        if self.uid is not None and self.uid != uid:
            self._lose(self.uid)
        if self._adopts:
            self.register(uid)
        elif self.uid is None and self.is_successor(uid):
            self._notify_replaced()  # others created it again, and we can take it over

    async def wait_for_update(self, seconds: float) -> None:
        """Return when the Node has changed, or after so long."""
        self._updated = asyncio.Event()
        await self._clock.wait(self._updated, seconds)
        self._updated = None

    # --- whether it is ours

    @property
    def wants_registration(self) -> bool:
        """Whether it is on us to create the Node."""
        return self.uid is None and not self._adopts

    @property
    def is_deleted(self) -> bool:
        """Whether our Node was there and was deleted, which is more than not being there yet."""
        return self._deleted_uid is not None

    def is_successor(self, uid: str) -> bool:
        """Whether a Node with this UID came after ours, which was deleted."""
        return self._deleted_uid not in {None, uid}

    def register(self, uid: str, *, is_new: bool = False) -> None:
        """Make the Node with this UID ours; a new one was created by us a moment ago, or was never reported on."""
        if uid != self.uid:
            self.is_new = self.asks_less and is_new
            self.uid, self._deleted_uid = uid, None
            self._adopts = self._adopts or self.config.registration.on_node_deleted == "idle"
            self._notify_replaced()

    @property
    def is_final(self) -> bool:
        """Whether our Node was deleted, and the settings say that this is the end of it."""
        return self.is_deleted and self.config.registration.on_node_deleted == "exit"

    def _drop(self) -> None:
        self.shown_uid, self._version, self._packed, self.ready_status = None, "", b"", ""

    def _lose(self, uid: str) -> None:
        on_deleted = self.config.registration.on_node_deleted
        log.info("Node was deleted", {"node": self.name, "uid": uid, "onNodeDeleted": on_deleted})
        self.uid, self._deleted_uid = None, uid
        self._notify_replaced()

    def _notify_replaced(self) -> None:
        self._notify(self._on_changed)
        self._notify(self._on_replaced)

    def _notify(self, listeners: Sequence[Callable[[], None]]) -> None:
        for listener in listeners:
            listener()
