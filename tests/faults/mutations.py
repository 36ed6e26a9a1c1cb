"""What can be wrong with an object: every field of another type, size or encoding, or not there at all.

The same seed makes the same objects.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, json

TIMES = (
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "0001-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "10000-01-01T00:00:00Z",
    "2026-01-01T00:00:00z",
    "2026-01-01t00:00:00Z",
    "2026-01-01 00:00:00Z",
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z\n",
    "2026-02-30T00:00:00Z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00,5+05:30",
    "2026-01-01T00:00:00." + "1" * 40 + "Z",
    "2026-01-01T00:00:00." + "1" * 5000 + "Z",
    "٢٠٢٦-01-01T00:00:00Z",
    "20260101T000000Z",
    "2026-W01-1",
)
AMOUNTS = (
    "1\n",
    "٣",
    "1_000",
    " 1 ",
    "1e99999999999",
    "1e99",
    "1e-99",
    "-1",
    "+",
    ".",
    "0x10",
    "9" * 40,
    "9" * 127,
    "9" * 5000,
    "1." + "0" * 5000 + "1",
    "1Ki\n",
    "1mm",
    "-9E",
    "9" * 40 + "E",
    "∞",
    "NaN",
)
NAMES = (
    "../../etc/passwd",
    "a/b",
    "a%2fb",
    "..",
    "a\nb",
    "a\0b",
    "\x1b[31m",
    "ä",
    "a" * 300,
    "a b",
    "n1?x=y",
    "n1#",
    "",
)
ADDRESSES = (
    "not-an-ip",
    "999.1.1.1",
    "٣.1.1.1",
    "::1%eth0",
    "fe80::1%" + "x" * 500,
    "10.0.0.0/99",
    "10.0.0.1/-1",
    "0.0.0.0/0",
    "::/0",
    "10.0.0.0/31",
    "10.0.0.0/32",
    "10.0.0.7/24",
    "2001:db8::/128",
    "/",
)
DURATIONS = (
    "9" * 5000 + "s",
    "1s" * 50_000,
    "1e3s",
    "\uff11s",
    "-5s",
    "0.000000000000000000001h",
    "999999h",
    "3000000h",
    "s",
)
OTHERS = (
    None,
    True,
    False,
    0,
    -1,
    1,
    3.5,
    1e308,
    2**31,
    -(2**31) - 1,
    2**63,
    10**30,
    "",
    "x",
    "9" * 5000,
    "True",
    "x" * 100_000,
    [],
    [None],
    [[]],
    [{}],
    ["x"] * 1000,
    {},
    {"a": []},
    {"": ""},
    {"\0": "\x1b"},
    {str(number): number for number in range(1000)},
    "%%%",
    "YQ",
    "YWJj",
)
# What no value of ours becomes when it is encoded.
FRAGMENTS = tuple(
    map(
        Raw,
        (
            b"9" * 400,
            b"-" + b"9" * 5000,
            b"1e400",
            b"-1e400",
            b"NaN",
            b"-0",
            b"1.0",
            b'"\\ud800"',
            b'"\\u0000"',
            b'"\xff"',
            b'"\xed\xa0\x80"',
            b'"\xf4\x90\x80\x80"',
            b'{"a":1,"a":[]}',
            b'{"a":}',
            b"[" * 90 + b"]" * 90,
            b"[" * 500 + b"]" * 500,
            b'{"a":' * 300 + b"1" + b"}" * 300,
            b"[" * 50_000,
            b"[" + b"{}," * 120_000 + b"{}]",
        ),
    )
)
_COMMON = (*TIMES, *AMOUNTS, *NAMES, *ADDRESSES, *DURATIONS, *OTHERS)
_HUGE = frozenset(id(value) for value in FRAGMENTS[-2:])  # these take a while, and mean one thing only


class Mutations:
    """Mutations of one object: each of its fields in turn, and others by chance."""

    def __init__(self, seed: Any, chance: random.Random) -> None:
        self._content = json.encode(seed)
        self._places = [place for place in _places(seed) if place]
        self._chance = chance
        self._turn = 0

    def next(self) -> bytes:
        """The next one, as bytes."""
        changed = json.decode(self._content)
        place = self._places[self._turn % len(self._places)]
        self._turn += 1
        self._hurt(changed, place)
        for _ in range(self._chance.choice((0, 0, 0, 1, 3))):
            self._hurt(changed, self._chance.choice(self._places))
        content = json.encode(changed)
        return self._garbled(content) if self._chance.random() < 0.05 else content

    def any(self) -> bytes:
        """One of them."""
        self._turn = self._chance.randrange(len(self._places))
        return self.next()

    def value(self) -> Any:
        """Something to put in a place."""
        if self._chance.random() < 0.1:
            value = self._chance.choice(FRAGMENTS)
            return value if id(value) not in _HUGE or self._chance.random() < 0.02 else None
        return copy.deepcopy(self._chance.choice(_COMMON))

    def _hurt(self, changed: Any, place: tuple[Any, ...]) -> None:
        *way, last = place
        parent = changed
        try:
            for key in way:
                parent = parent[key]
            old = parent[last]
        except (KeyError, IndexError, TypeError):
            return  # gone already
        if not isinstance(parent, dict | list):
            return
        match self._chance.randrange(10):
            case 0:
                del parent[last]
            case 1:
                parent[last] = [old]
            case 2 if isinstance(parent, dict):
                parent[str(self._chance.choice((*NAMES, *ADDRESSES)))] = parent.pop(last)
            case 3 if isinstance(old, list):
                parent[last] = old * self._chance.choice((0, 2, 50))
            case 3 | 4 if isinstance(old, str):
                parent[last] = self._chance.choice((old + "\n", " " + old, old + "\0", old * 300, old[1:], old.upper()))
            case 3 | 4 if isinstance(old, int):
                parent[last] = self._chance.choice((-old, old + 1, old * 2**40, float(old), str(old)))
            case _:
                parent[last] = self.value()

    def _garbled(self, content: bytes) -> bytes:
        place = self._chance.randrange(len(content))
        match self._chance.randrange(4):
            case 0:
                return content[:place]
            case 1:
                return content[:place] + self._chance.randbytes(4) + content[place:]
            case 2:
                return content[place:]
            case _:
                return content + content


def _places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*way, key))
