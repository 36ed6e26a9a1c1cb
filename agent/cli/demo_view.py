"""What the demo shows of the node, and how: a live screen in a terminal, plain lines anywhere else."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from agent.core.model import LeaseObject, NodeObject, NodeStatus, Object
from agent.core.nodestatus import PRESSURE_TYPES, find_condition, is_ready
from agent.core.pressure import Observation, Threshold
from agent.core.quantity import Quantity
from agent.core.times import parse_time

_EVENTS_SHOWN = 6
_PODS_SHOWN = 4
_BORDER_LINES = 2
_SUMMARY_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything that the view depends on, at one time."""

    node: NodeObject | None
    lease: LeaseObject | None
    events: Sequence[Object]
    pods: Sequence[Object]
    signals: Mapping[str, Observation]
    thresholds: Sequence[Threshold]
    now: datetime

    @property
    def ready(self) -> bool:
        """Whether the Node is Ready."""
        return self.node is not None and is_ready(self.node.get("status", {}))


Show = Callable[[Scene], None]
Section = tuple[str, list[list[str]]]
"""A title, and rows of cells."""


@contextmanager
def live_screen(footer: str) -> Iterator[Show]:
    """Draw each scene over the last one, below the footer; events have the lines that are left of the terminal."""
    from rich.console import Console  # noqa: PLC0415  a quarter of a second that only a terminal pays for
    from rich.live import Live  # noqa: PLC0415
    from rich.panel import Panel  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()

    def drawn(scene: Scene) -> Panel:
        page = Table.grid(padding=(0, 2))
        for title, rows in fitting(list(sections(scene)), console.height - footer.count("\n") - 2):
            table = Table.grid(padding=(0, 2))
            for row in rows:
                table.add_row(
                    *(Text(cell, style=_colour(row[0], cell), no_wrap=True, overflow="ellipsis") for cell in row)
                )
            page.add_row(Text(title, style="bold cyan"), table)
        return Panel(page, title="fake-kubelet demo", subtitle="Ctrl-C ends it")

    def begun() -> Live:
        console.print(Text(footer, style="dim"))
        live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        live.start()
        return live

    live, size = begun(), console.size

    def show(scene: Scene) -> None:
        nonlocal live, size
        if console.size != size:  # the terminal has wrapped the lines anew, and nobody knows where they are now
            live.stop()
            console.clear()
            live, size = begun(), console.size
        live.update(drawn(scene), refresh=True)

    try:
        yield show
    finally:
        live.stop()


def fitting(page: list[Section], lines: int) -> list[Section]:
    """Return the page with as many of its last section's rows, the newest, as so many lines have room for."""
    *others, (title, rows) = page
    room = lines - _BORDER_LINES - sum(len(section_rows) for _, section_rows in others)
    return [*others, (title, rows[-max(1, room) :])]


def _colour(subject: str, cell: str) -> str:
    # False is good news about pressure, and bad news about readiness.
    if cell in {"True", "False"}:
        return "bold green" if (cell == "True") == (subject == "Ready") else "bold red"
    return "bold red" if cell in {"Unknown", "Warning"} else ""


@contextmanager
def plain_lines(footer: str) -> Iterator[Show]:
    """Print the whole view when the node becomes ready, each event once, and a summary now and then."""
    print(footer, flush=True)  # noqa: T201
    printed: set[str] = set()
    was_ready = False
    last_summary = None

    def show(scene: Scene) -> None:
        nonlocal was_ready, last_summary
        for event in scene.events:
            if event["metadata"]["name"] not in printed:
                printed.add(event["metadata"]["name"])
                print(f"event {event['type']} {event['reason']}: {event['message']}", flush=True)  # noqa: T201
        if scene.ready and not was_ready:
            was_ready = True
            print("\n".join(_text(scene)), flush=True)  # noqa: T201
        if last_summary is None or (scene.now - last_summary).total_seconds() >= _SUMMARY_SECONDS:
            last_summary = scene.now
            print(summary_line(scene), flush=True)  # noqa: T201

    yield show


def _text(scene: Scene) -> Iterator[str]:
    for title, rows in sections(scene):
        yield title
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
        for row in rows:
            yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()


def sections(scene: Scene) -> Iterator[Section]:
    """Yield the sections of the view."""
    if scene.node is None:
        yield "Node", [["waiting for the node to register itself"]]
        return
    status = scene.node["status"]
    addresses = [entry["address"] for entry in status.get("addresses", []) if entry["type"] == "InternalIP"]
    yield "Node", [[scene.node["metadata"]["name"], status["nodeInfo"]["kubeletVersion"], " ".join(addresses)]]
    yield "Conditions", [_condition(scene, kind) for kind in ("Ready", *PRESSURE_TYPES)]
    yield "Resources", _resources(status)
    yield "Heartbeat", [["lease", _lease(scene)], ["status", _report(scene, status)]]
    yield "Pods", [[_pod_counts(scene)], [_newest_pods(scene)]]
    newest = sorted(scene.events, key=lambda event: event["metadata"]["creationTimestamp"])[-_EVENTS_SHOWN:]
    yield "Events", [_event(event, scene.now) for event in newest] or [["none yet"]]


def summary_line(scene: Scene) -> str:
    """Return the node in one line, for a log."""
    if scene.node is None:
        return "waiting for the node to register itself"
    status = scene.node["status"]
    states = " ".join(f"{kind}={_state(status, kind)}" for kind in ("Ready", *PRESSURE_TYPES))
    heartbeat = f"lease {_lease(scene)} | status {_report(scene, status)}"
    return f"node {scene.node['metadata']['name']} {states} | {heartbeat} | pods: {_pod_counts(scene)}"


def _condition(scene: Scene, kind: str) -> list[str]:
    status: NodeStatus = scene.node["status"] if scene.node else {}
    condition = find_condition(status, kind)
    message = condition.get("message", "") if condition else ""
    detail = message if kind == "Ready" else _signals(scene, kind)
    return [kind, _state(status, kind), detail]


def _state(status: NodeStatus, kind: str) -> str:
    condition = find_condition(status, kind)
    return condition["status"] if condition else "Unknown"


def _signals(scene: Scene, kind: str) -> str:
    """Return each signal of a condition, with its threshold."""
    texts = []
    for threshold in scene.thresholds:
        signal = scene.signals.get(threshold.signal)
        if threshold.condition == kind and signal and threshold.signal.startswith(("memory.", "nodefs.", "pid.")):
            of = _amount(threshold.signal, threshold.value.of(signal.capacity))
            texts.append(f"{threshold.signal} {_amount(threshold.signal, signal.available)} (pressure below {of})")
    return ", ".join(texts) or "no threshold set"


def _amount(signal: str, amount: int) -> str:
    if signal.startswith("pid.") or signal.endswith(".inodesFree"):
        return str(amount)
    return f"{amount / 2**30:.1f}Gi" if amount >= 2**30 else f"{amount / 2**20:.0f}Mi"


def _resources(status: NodeStatus) -> list[list[str]]:
    """Return a column for each resource that the node has."""
    capacity, allocatable = status.get("capacity", {}), status.get("allocatable", {})
    names = [name for name, text in capacity.items() if Quantity.parse(str(text)).nano]
    return [
        ["", *names],
        ["capacity", *(str(capacity[name]) for name in names)],
        ["allocatable", *(str(allocatable.get(name, "-")) for name in names)],
    ]


def _pod_counts(scene: Scene) -> str:
    phases = [pod["status"].get("phase") for pod in scene.pods]
    return f"{phases.count('Running')} running, {phases.count('Pending')} pending, {len(phases)} in total"


def _newest_pods(scene: Scene) -> str:
    newest = sorted(scene.pods, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)[:_PODS_SHOWN]
    return ", ".join(f"{pod['metadata']['name']} {pod['status'].get('phase')}" for pod in newest) or "none yet"


def _lease(scene: Scene) -> str:
    if scene.lease is None:
        return "none yet"
    spec = scene.lease["spec"]
    age = _seconds_since(spec["renewTime"], scene.now)
    return f"renewed {age:.1f}s ago by {spec['holderIdentity']}, good for {spec['leaseDurationSeconds']}s"


def _report(scene: Scene, status: NodeStatus) -> str:
    ready = find_condition(status, "Ready")
    return f"last reported {_seconds_since(ready['lastHeartbeatTime'], scene.now):.0f}s ago" if ready else "none yet"


def _event(event: Object, now: datetime) -> list[str]:
    age = _seconds_since(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"], now)
    return [f"{age:.0f}s", event["type"], event["reason"], event["message"]]


def _seconds_since(timestamp: str, now: datetime) -> float:
    return max(0.0, (now - parse_time(timestamp)).total_seconds())
