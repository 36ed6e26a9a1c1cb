"""How many of many may be under way at once, found by trying: additive increase, multiplicative decrease."""

_REST_SECONDS = 1.0  # what was under way at a decrease says nothing about the new limit


class AdaptiveLimit:
    """A limit that grows while all goes well, and halves when the other side is overrun, as TCP finds its rate.

    It grows by one for each success at first, and after the first decrease by one for as many as the limit allows.
    """

    def __init__(self, first: int, *, least: int = 1, most: int) -> None:
        self._least, self._most = least, most
        self._limit = float(first)
        self._rests_until = 0.0
        self._is_slow = False
        self.decreases = 0
        """How often the other side was overrun."""

    @property
    def limit(self) -> int:
        """How many may be under way now."""
        return int(self._limit)

    def succeeded(self) -> None:
        """Take in that one of them is done."""
        self._limit = min(self._most, self._limit + (1 / self._limit if self._is_slow else 1))

    def overrun(self, now_seconds: float) -> None:
        """Take in that the other side refused, failed or was slow; of many at once, the first counts."""
        if now_seconds < self._rests_until:
            return
        self._rests_until = now_seconds + _REST_SECONDS
        self._is_slow = True
        self._limit = max(self._least, self._limit / 2)
        self.decreases += 1
