"""What `fleet` shows: a progress bar and a live view in a terminal, plain lines anywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agent import klog
from agent.core.fleet_view import STATES, FleetView, age_histogram, percentile, plain_line

_BAR_WIDTH = 40
_LINE_SECONDS, _LOOK_SECONDS = 10.0, 0.5
_COLOURS = {"Ready": "green", "NotReady": "yellow", "Unknown": "red", "deleted": "red"}


class PlainScreen:
    """Prints a line every ten seconds, and one as soon as all nodes are ready."""

    def __init__(self) -> None:
        self._next_seconds = 0.0
        self._was_up = False

    @property
    def refresh_seconds(self) -> float:
        """How long until it has to look again: to look at thousands of nodes costs as much as some renewals."""
        return _LINE_SECONDS if self._was_up else _LOOK_SECONDS

    def show(self, view: FleetView) -> None:
        """Print the fleet if it is time to."""
        is_up = view.ready == view.total > 0
        if view.seconds >= self._next_seconds or (is_up and not self._was_up):
            self._next_seconds = view.seconds + _LINE_SECONDS
            sys.stdout.write(f"{plain_line(view)}\n")
            sys.stdout.flush()
        if is_up and not self._was_up:
            sys.stdout.write(f"All {view.total} nodes of fleet {view.name} were Ready after {view.seconds:.1f}s\n")
            sys.stdout.flush()
        self._was_up = self._was_up or is_up


class LiveScreen:
    """Draws the fleet over what it drew before."""

    refresh_seconds = 1.0

    def __init__(self, live: Any) -> None:
        self._live = live

    def show(self, view: FleetView) -> None:
        """Draw the fleet."""
        self._live.update(_panel(view), refresh=True)


@contextmanager
def fleet_screen() -> Iterator[PlainScreen | LiveScreen]:
    """Return the screen that fits standard output."""
    if not sys.stdout.isatty():
        yield PlainScreen()
        return
    from rich.live import Live  # noqa: PLC0415  a quarter of a second that only a terminal pays for

    try:
        with Live(auto_refresh=False) as live:
            klog.redirect(sys.stderr)  # which Live has replaced: log lines appear above what it draws
            yield LiveScreen(live)
    finally:
        klog.redirect(sys.stderr)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Return what shows how many of all are done: a bar in a terminal, nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console  # noqa: PLC0415  as above
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def rows(view: FleetView) -> Iterator[tuple[str, str]]:
    """Yield the lines of the live view, each with its title."""
    states = [f"{view.states[state]} {state}" for state in STATES if view.states.get(state)]
    yield "Nodes", f"{_bar(view.ready, view.total)} {view.ready}/{view.total} Ready"
    yield "States", ", ".join(states) or "none"
    yield (
        "Leases",
        (f"{view.renewals_per_second:.0f} renewals/s, oldest {view.oldest_seconds:.1f}s, {view.missed} missed"),
    )
    for label, count in age_histogram(view.lease_ages):
        yield f"  {label}", f"{_bar(count, len(view.lease_ages))} {count}"
    p50, p99 = (1000 * percentile(view.latencies, percent) for percent in (50, 99))
    yield "API", f"latency p50 {p50:.0f} ms, p99 {p99:.0f} ms"
    yield "Pods", str(view.pods)
    yield "Memory", f"{view.rss_bytes / 2**20:.0f} MiB"


def _bar(part: int, whole: int) -> str:
    filled = round(_BAR_WIDTH * part / whole) if whole else 0
    return "█" * filled + "░" * (_BAR_WIDTH - filled)


def _panel(view: FleetView) -> Any:
    from rich.panel import Panel  # noqa: PLC0415  as above
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2))
    for title, text in rows(view):
        table.add_row(Text(title, style="bold cyan"), Text(text, no_wrap=True, overflow="ellipsis"))
    title = f"fake-kubelet fleet {view.name}: {view.seconds:.0f}s"
    return Panel(table, title=title, subtitle="Ctrl-C ends it; the Nodes stay until fleet delete")
