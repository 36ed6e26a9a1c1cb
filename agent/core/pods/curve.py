"""An amount over time, such as the CPU that a container uses: straight lines between points, once or again and again.

All numbers are whole (milliseconds, and billionths as in a Quantity), so that a sum over time never falls, not even by
a rounding error: metrics-server takes a counter that falls for a restart.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import NamedTuple, Self

_SINE_STEPS = 48  # off by 0.1 % of the height at most
_NOISE_STEPS = 60
_NOISE_MS = 10_000  # one value lasts as long as cAdvisor's housekeeping
_WAVE = [(1 - math.cos(2 * math.pi * step / _SINE_STEPS)) / 2 for step in range(_SINE_STEPS + 1)]


class Point(NamedTuple):
    """The amount at one moment. Of two points at one moment, the first ends a line, and the second begins one."""

    at_ms: int
    nano: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Lines between points, of which the first is at 0; after the last one its amount stays, or all repeats."""

    points: tuple[Point, ...]
    is_periodic: bool = False
    _sums: tuple[int, ...] = field(init=False, repr=False, compare=False)  # until each point, in nano-milliseconds

    def __post_init__(self) -> None:
        """Sum up the lines once: a scrape asks for the sums of hundreds of curves."""
        sums = accumulate(
            (_area(begin, end, end.at_ms - begin.at_ms) for begin, end in pairwise(self.points)), initial=0
        )
        object.__setattr__(self, "_sums", tuple(sums))

    @classmethod
    def constant(cls, nano: int) -> Self:
        """Return an amount that never changes."""
        return cls((Point(0, nano),))

    @classmethod
    def ramp(cls, first: int, last: int, duration_ms: int) -> Self:
        """Return an amount that changes evenly from the first to the last, and stays."""
        return cls((Point(0, first), Point(duration_ms, last)))

    @classmethod
    def sine(cls, low: int, high: int, period_ms: int) -> Self:
        """Return a wave that begins at its lowest."""
        points = (
            Point(step * period_ms // _SINE_STEPS, low + round((high - low) * height))
            for step, height in enumerate(_WAVE)
        )
        return cls(tuple(points), is_periodic=True)

    @classmethod
    def steps(cls, steps: Iterable[Point]) -> Self:
        """Return an amount that jumps at these moments, of which the first is 0."""
        points: list[Point] = []
        for step in steps:
            if points:
                points.append(Point(step.at_ms, points[-1].nano))
            points.append(step)
        return cls(tuple(points))

    @classmethod
    def noise(cls, mean: int, spread: float, seed: str) -> Self:
        """Return an amount that jumps by chance within this share of its mean; the same for the same seed."""
        dice = sha256(seed.encode()).digest()
        while len(dice) < 2 * _NOISE_STEPS:
            dice += sha256(dice).digest()
        shares = [int.from_bytes(dice[at : at + 2]) / 0xFFFF * 2 - 1 for at in range(0, 2 * _NOISE_STEPS, 2)]
        steps = (Point(at * _NOISE_MS, max(0, round(mean * (1 + spread * share)))) for at, share in enumerate(shares))
        curve = cls.steps(steps)
        return cls((*curve.points, Point(_NOISE_STEPS * _NOISE_MS, curve.points[-1].nano)), is_periodic=True)

    def at(self, ms: int) -> int:
        """Return the amount at a moment; before the first point it is that of the first."""
        ms = max(0, ms) % self._length_ms if self.is_periodic else max(0, ms)
        after = bisect_right(self.points, ms, key=_at)
        begin = self.points[after - 1]
        if after == len(self.points):
            return begin.nano
        end = self.points[after]
        return begin.nano + (end.nano - begin.nano) * (ms - begin.at_ms) // (end.at_ms - begin.at_ms)

    def sum_until(self, ms: int) -> int:
        """Return the amount multiplied by the time since 0, in billionths for one second, rounded down."""
        rounds, rest = divmod(max(0, ms), self._length_ms) if self.is_periodic else (0, max(0, ms))
        return (rounds * self._sum(self._length_ms) + self._sum(rest)) // 1000 if rounds else self._sum(rest) // 1000

    def at_most(self, limit: int) -> "Curve":
        """Return the curve, cut off at a limit."""
        if all(point.nano <= limit for point in self.points):
            return self
        return Curve(tuple(self._cut(limit)), self.is_periodic)

    def first_above(self, limit: int) -> int | None:
        """Return the first moment at which the amount is above a limit; None if it never is."""
        if self.points[0].nano > limit:
            return 0
        for begin, end in pairwise(self.points):
            if end.nano > limit:
                return _crossing(begin, end, limit) + 1 if end.at_ms > begin.at_ms else end.at_ms
        return None

    @property
    def _length_ms(self) -> int:
        return self.points[-1].at_ms

    def _sum(self, until_ms: int) -> int:
        """Return the sum within one round."""
        at = bisect_right(self.points, until_ms, key=_at) - 1
        begin = self.points[at]
        end = self.points[at + 1] if at + 1 < len(self.points) else begin._replace(at_ms=until_ms)
        return self._sums[at] + _area(begin, end, until_ms - begin.at_ms)

    def _cut(self, limit: int) -> Iterator[Point]:
        yield Point(0, min(self.points[0].nano, limit))
        for begin, end in pairwise(self.points):
            if (begin.nano > limit) != (end.nano > limit) and end.at_ms > begin.at_ms:
                yield Point(_crossing(begin, end, limit), limit)
            yield Point(end.at_ms, min(end.nano, limit))


def _area(begin: Point, end: Point, passed_ms: int) -> int:
    """Return the sum along the first milliseconds of a line."""
    if not passed_ms:
        return 0
    return begin.nano * passed_ms + (end.nano - begin.nano) * passed_ms * passed_ms // (2 * (end.at_ms - begin.at_ms))


def _at(point: Point) -> int:
    return point.at_ms


def _crossing(begin: Point, end: Point, limit: int) -> int:
    """Return when the line between two points of different amounts is at the limit."""
    return begin.at_ms + (limit - begin.nano) * (end.at_ms - begin.at_ms) // (end.nano - begin.nano)
