"""The figures of a run as a table that the README can quote."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from tests.bench.proc import Footprint, cpu_model
from tests.cluster.audit import Request, by_kind, lease_intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was seen of one program; `requests` begin with its start, costs and rates belong to the time between."""

    starts: Sequence[float]
    since: datetime
    until: datetime
    before: Footprint
    after: Footprint
    requests: Sequence[Request]
    runtime: Footprint | None = None

    @property
    def minutes(self) -> float:
        """How long costs and rates were measured."""
        return (self.until - self.since).total_seconds() / 60

    @property
    def measured_requests(self) -> list[Request]:
        """The requests of that time."""
        return [request for request in self.requests if self.since <= request.received < self.until]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: its name, its value, and how to write it."""

    name: str
    value: Callable[[Figures], float]
    form: str


ROWS = (
    Row("exec → Ready, median (s)", lambda f: median(f.starts), ".2f"),
    Row("exec → Ready, fastest (s)", lambda f: min(f.starts), ".2f"),
    Row("exec → Ready, slowest (s)", lambda f: max(f.starts), ".2f"),
    Row("VmRSS (MiB)", lambda f: f.after.rss_kib / 1024, ".1f"),
    Row("RssAnon (MiB)", lambda f: f.after.anonymous_kib / 1024, ".1f"),
    Row("CPU per minute (ms)", lambda f: (f.after.cpu_ms - f.before.cpu_ms) / f.minutes, ".0f"),
    Row("API requests per minute", lambda f: len(f.measured_requests) / f.minutes, ".1f"),
    Row("threads", lambda f: f.after.threads, ".0f"),
    Row("open files", lambda f: f.after.open_files, ".0f"),
)


def markdown(figures: dict[str, Figures], *, peer: str) -> str:
    """The table, and below it the facts without which it says little, the peer's version among them."""
    names = list(figures)
    comparable = {"kubelet", "fake-kubelet"} <= figures.keys()
    lines = [
        f"| | {' | '.join(names)} | ratio |",
        f"|---|{'---:|' * (len(names) + 1)}",
        *(_line(row, figures, comparable=comparable) for row in ROWS),
        f"| lease renewed every, min / median / max (s) | {' | '.join(map(_leases, figures.values()))} | |",
        "",
        *(_requests(name, found) for name, found in figures.items()),
        *(_runtime(found.runtime) for found in figures.values() if found.runtime),
        _machine(peer),
    ]
    return "\n".join(lines)


def _line(row: Row, figures: dict[str, Figures], *, comparable: bool) -> str:
    values = {name: row.value(found) for name, found in figures.items()}
    written = " | ".join(format(value, row.form) for value in values.values())
    ratio = ""
    if comparable and values["kubelet"]:
        ratio = f"{values['fake-kubelet'] / values['kubelet']:.2f}"
    return f"| {row.name} | {written} | {ratio} |"


def _leases(figures: Figures) -> str:
    intervals = lease_intervals(figures.requests)
    if not intervals:
        return "none"
    return f"{min(intervals):.2f} / {median(intervals):.2f} / {max(intervals):.2f}"


def _requests(name: str, figures: Figures) -> str:
    kinds = by_kind(figures.measured_requests).most_common()
    told = ", ".join(f"{count} {kind}" for kind, count in kinds)
    return f"- requests of {name} in {figures.minutes * 60:.0f} s: {told or 'none'}"


def _runtime(footprint: Footprint) -> str:
    return f"- not counted for the kubelet: its fake container runtime, VmRSS {footprint.rss_kib / 1024:.1f} MiB"


def _machine(peer: str) -> str:
    """The machine and the versions, in one line."""
    facts = (
        f"{os.cpu_count()} cores ({cpu_model()})",
        f"Linux {platform.release()}",
        f"Python {platform.python_version()}",
        f"kubelet {peer}",
        f"load average {os.getloadavg()[0]:.1f}",
    )
    return f"- machine: {', '.join(facts)}"
