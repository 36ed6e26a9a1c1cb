"""Which Node of the cluster is ours."""

import asyncio
import logging
from collections.abc import Callable

from agent.core.config import Registration
from agent.ports import NodeDeleted

log = logging.getLogger(__name__)


class Membership:
    """The UID of our living Node, as far as we know, and word of every change."""

    def __init__(self, *, node_name: str, registration: Registration, wake: Callable[[], None] = lambda: None) -> None:
        self.uid: str | None = None
        self._gone: str | None = None  # the one that was ours last, while there is no other
        self._name = node_name
        self._on_deleted = registration.on_node_deleted
        self._adopts = not registration.register_node  # whether a Node that others made is ours without further ado
        self._listeners = [wake]
        self._news = asyncio.Event()

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call this after every change."""
        self._listeners.append(listener)

    @property
    def news(self) -> asyncio.Event:
        """Set at the next change."""
        return self._news

    @property
    def wants_registration(self) -> bool:
        """Whether we have to see to it ourselves that there is a Node."""
        return self.uid is None and not self._adopts

    @property
    def is_gone(self) -> bool:
        """Whether it was there and was deleted, which is more than not being there yet."""
        return self._gone is not None

    def is_successor(self, uid: str) -> bool:
        """Whether a Node with this UID came after ours that is gone."""
        return self._gone not in {None, uid}

    def joined(self, uid: str) -> None:
        """The Node with this UID is ours."""
        if uid != self.uid:
            self.uid, self._gone = uid, None
            self._adopts = self._adopts or self._on_deleted == "idle"
            self._announce()

    def seen(self, uid: str) -> None:
        """The API server shows a Node of our name; with another UID it is another Node."""
        if self.uid not in {None, uid}:
            self.lost()
        if self._adopts:
            self.joined(uid)
        elif self.uid is None and self.is_successor(uid):
            self._announce()  # others made it again, and we can take it over

    def lost(self) -> None:
        """The API server shows no Node of our name."""
        if self.uid is None:
            return
        log.info("Node was deleted", {"node": self._name, "uid": self.uid, "onNodeDeleted": self._on_deleted})
        self.uid, self._gone = None, self.uid
        self._announce()

    def check(self) -> None:
        """Raise NodeDeleted where a deleted Node is the end."""
        if self.is_gone and self._on_deleted == "exit":
            raise NodeDeleted(f"node {self._name} was deleted")

    async def other_than(self, uid: str | None) -> str | None:
        """The UID, or the lack of one, as soon as it differs from this."""
        while self.uid == uid:
            await self._news.wait()
        return self.uid

    def _announce(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
        for listener in self._listeners:
            listener()
