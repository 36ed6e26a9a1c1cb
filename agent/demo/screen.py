"""Where the demo is shown: a live screen in a terminal, plain lines anywhere else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.demo.view import Scene, sections, summary

Show = Callable[[Scene], None]

_SUMMARY_SECONDS = 10.0


@contextmanager
def live_screen(footer: str) -> Iterator[Show]:
    """Draw each scene over the last one, small enough for 24 lines."""
    from rich.console import Console  # noqa: PLC0415  a quarter of a second that only a terminal pays for
    from rich.live import Live  # noqa: PLC0415
    from rich.panel import Panel  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    def drawn(scene: Scene) -> Panel:
        page = Table.grid(padding=(0, 2))
        for title, rows in sections(scene):
            table = Table.grid(padding=(0, 2))
            for row in rows:
                table.add_row(
                    *(Text(cell, style=_colour(row[0], cell), no_wrap=True, overflow="ellipsis") for cell in row)
                )
            page.add_row(Text(title, style="bold cyan"), table)
        return Panel(page, title="fake-kubelet demo", subtitle="Ctrl-C ends it")

    console = Console()
    console.print(Text(footer, style="dim"))
    with Live(console=console, auto_refresh=False) as live:
        yield lambda scene: live.update(drawn(scene), refresh=True)


def _colour(subject: str, cell: str) -> str:
    # False is good news about pressure, and bad news about readiness.
    if cell in {"True", "False"}:
        return "bold green" if (cell == "True") == (subject == "Ready") else "bold red"
    return "bold red" if cell in {"Unknown", "Warning"} else ""


@contextmanager
def plain_lines(footer: str) -> Iterator[Show]:
    """Print the whole view when the node becomes ready, each event once, and a summary now and then."""
    print(footer, flush=True)  # noqa: T201
    told: set[str] = set()
    was_ready = False
    last_summary = None

    def show(scene: Scene) -> None:
        nonlocal was_ready, last_summary
        for event in scene.events:
            if event["metadata"]["name"] not in told:
                told.add(event["metadata"]["name"])
                print(f"event {event['type']} {event['reason']}: {event['message']}", flush=True)  # noqa: T201
        if scene.ready and not was_ready:
            was_ready = True
            print("\n".join(_text(scene)), flush=True)  # noqa: T201
        if last_summary is None or (scene.now - last_summary).total_seconds() >= _SUMMARY_SECONDS:
            last_summary = scene.now
            print(summary(scene), flush=True)  # noqa: T201

    yield show


def _text(scene: Scene) -> Iterator[str]:
    for title, rows in sections(scene):
        yield title
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
        for row in rows:
            yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
