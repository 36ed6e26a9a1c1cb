"""Our Node as the watch last showed it."""

import asyncio
from collections.abc import Callable, Sequence

from agent.core.conditions import find_condition
from agent.core.model import Object
from agent.loops.membership import Membership


class OwnNode:
    """A copy of our Node that costs no request: what a kubelet has in its informer."""

    def __init__(self, *, membership: Membership, wake: Callable[[], None] = lambda: None) -> None:
        self.node: Object | None = None
        self.news = asyncio.Event()  # set, and another one there, when the Node changes
        self.is_known = False  # whether the API server was ever asked: before that, no Node means nothing
        self._membership = membership
        self._wake = wake

    def reset(self, objects: Sequence[Object], version: str) -> None:
        """All there is at a version."""
        self.is_known = True
        if objects:
            self.node = None  # a list is the truth, whatever versions were told before
            self.put(objects[0])
        elif self.node is None or not is_newer(_version(self.node), version):
            self.forget()

    def put(self, node: Object) -> None:
        """The Node as the API server has it; an older state than the one known is no news."""
        before = self.node
        if before and _uid(before) == _uid(node) and is_newer(_version(before), _version(node)):
            return
        self.node = node
        self.news.set()
        self.news = asyncio.Event()
        self._membership.seen(_uid(node))
        if _is_given_up(node) and not (before and _version(before) == _version(node)):
            self._wake()  # the cluster had given us up: better than kubelet, we object at once

    def remove(self, node: Object) -> None:
        """This Node was deleted."""
        if self.node is None or _uid(self.node) == _uid(node):
            self.forget()

    def forget(self) -> None:
        """There is no Node of our name."""
        self.node = None
        self._membership.lost()


def _is_given_up(node: Object) -> bool:
    ready = find_condition(node.get("status", {}), "Ready")
    return bool(ready and ready["status"] == "Unknown")


def _uid(node: Object) -> str:
    uid: str = node["metadata"]["uid"]
    return uid


def _version(node: Object) -> str:
    version: str = node["metadata"]["resourceVersion"]
    return version


def is_newer(left: str, right: str) -> bool:
    """Versions are numbers that grow; where they are not, nothing is known."""
    if not all(text.isascii() and text.isdecimal() for text in (left, right)):
        return False
    # Without int(), which raises for thousands of digits.
    left, right = left.lstrip("0"), right.lstrip("0")
    return (len(left), left) > (len(right), right)
