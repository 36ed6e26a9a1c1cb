"""Answers that are good for a while, and never too many of them."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recall(Generic[K, V]):
    """Keeps values until their time; the one not asked for longest gives way to a new one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K, now: float) -> V | None:
        """The value, if its time is not over."""
        found = self._kept.get(key)
        if found is None:
            return None
        until, value = found
        if now >= until:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return value

    def keep(self, key: K, value: V, *, until: float) -> None:
        """Remember a value."""
        self._kept[key] = (until, value)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)
