"""The status page of this node: read-only, complete without JavaScript; by default this machine alone may read it."""

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from agent.adapters.server.fleet_page import fleet_main, fleet_state
from agent.core.fleet_view import FleetView
from agent.core.node_view import ConditionRow, NodeView, ResourceRow, Setting, SignalRow

_TEMPLATE = Path(__file__).with_name("status_page.html")
_STRIP_SECONDS = 600
_WORDS = {"ok": "renewed in time", "late": "renewed late", "failed": "failed"}


class StatusPage:
    """Fills the template, which is read with the first request."""

    def __init__(self, settings: Sequence[Setting] = ()) -> None:
        self._settings = settings
        self._template = ""

    def html(self, view: NodeView | FleetView) -> str:
        """Return the page of a node, or of a fleet, as it is now."""
        if isinstance(view, FleetView):
            name, state, main = f"fleet {view.name}", fleet_state(view)[0], fleet_main(view)
        else:
            name, state, main = view.node_name, _state(view)[0], _main(view)
        parts = {
            "title": escape(f"{name} · {state}"),
            "main": main,
            "settings": _settings(self._settings),
        }
        return re.sub(r"<!--(\w+)-->", lambda match: parts[match[1]], self._load_template())

    def headers(self) -> dict[str, str]:
        """Return the security headers: only the page's own style and script, nothing from elsewhere, no frame."""
        template = self._load_template()
        style, script = (_hash(template, tag) for tag in ("style", "script"))
        policy = (
            f"default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        }

    def _load_template(self) -> str:
        self._template = self._template or _TEMPLATE.read_text("utf-8")
        return self._template


def _hash(template: str, tag: str) -> str:
    content = template.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def _state(view: NodeView) -> tuple[str, bool]:
    """Return the node's state in a word, and whether that is good."""
    if view.node is None:
        return "not registered", False
    ready = next((condition for condition in view.conditions if condition.kind == "Ready"), None)
    if view.faults:
        return "unhealthy", False
    return ("Ready", True) if ready and ready.status == "True" else ("not ready", False)


def _main(view: NodeView) -> str:
    word, is_good = _state(view)
    parts = [
        f"<header><h1>{escape(view.node_name)}</h1>"
        f'<span id="state" class="pill {"good" if is_good else "bad"}">{escape(word)}</span>'
        f'<span class="version soft">{escape(view.version)}</span></header>',
        _faults(view),
        f"<section><h2>Heartbeat</h2>{_heartbeat(view)}</section>",
    ]
    if view.conditions:
        rows = "".join(map(_condition, view.conditions))
        parts.append(f'<section><h2>Conditions</h2><dl id="conditions">{rows}</dl></section>')
    if view.resources:
        rows = "".join(map(_share, view.resources))
        parts.append(f'<section><h2>Allocatable of capacity</h2><div id="resources">{rows}</div></section>')
    return "".join(parts)


def _faults(view: NodeView) -> str:
    if not view.faults:
        return ""
    rows = "".join(f"<p><strong>{escape(loop)}</strong>: {escape(reason)}</p>" for loop, reason in view.faults.items())
    return f'<section class="alert" id="faults" role="alert"><h2>Not well</h2>{rows}</section>'


def _heartbeat(view: NodeView) -> str:
    beats, width = view.renewals, min(60.0, max(1.5, view.renew_seconds * 0.8))
    counts = {verdict: sum(beat.verdict == verdict for beat in beats) for verdict in _WORDS}
    totals = ", ".join(f"{count} {_WORDS[verdict]}" for verdict, count in counts.items())
    marks = "".join(
        f'<rect class="beat-{beat.verdict}" x="{_STRIP_SECONDS - beat.age_seconds - width:.1f}" y="4" '
        f'width="{width:.1f}" height="24"><title>{ago(beat.age_seconds)}: {_WORDS[beat.verdict]}</title></rect>'
        for beat in beats
    )
    legend = "".join(f'<li class="{verdict}">{count} {_WORDS[verdict]}</li>' for verdict, count in counts.items())
    return (
        f'<svg id="strip" class="strip" viewBox="0 0 {_STRIP_SECONDS} 32" preserveAspectRatio="none" role="img" '
        f'aria-label="Lease renewals of the last 10 minutes: {totals}">{marks}</svg>'
        '<div class="scale soft" aria-hidden="true"><span>10 minutes ago</span><span>now</span></div>'
        f'<ul class="legend">{legend}</ul>{_lease(view)}'
    )


def _lease(view: NodeView) -> str:
    age = view.lease_age_seconds
    words = "The lease has not been renewed yet" if age is None else f"The lease was renewed {ago(age)}"
    missed = "no renewal was missed" if not view.missed else f"{view.missed} renewals were missed"
    lines = [
        f'<p id="lease">{words}; it is due every {view.renew_seconds:g} s and lasts {view.lease_seconds:g} s; '
        f"{missed} since the start.</p>"
    ]
    if trouble := view.last_trouble:
        lines.append(
            f'<p id="last-error" class="soft">Last error, {ago(trouble.age_seconds)}: '
            f"{escape(trouble.loop)}: {escape(trouble.reason)}</p>"
        )
    return "".join(lines)


def _condition(condition: ConditionRow) -> str:
    tone = "bad" if condition.is_bad else "good"
    signals = "".join(map(_signal, condition.signals))
    return (
        f'<div><dt>{escape(condition.kind)} <span class="pill {tone}">{escape(condition.status)}</span></dt>'
        f'<dd><span class="soft">{escape(condition.message or condition.reason)}</span>{signals}</dd></div>'
    )


def _signal(row: SignalRow) -> str:
    threshold = f"pressure below {row.threshold}" if row.threshold else "no threshold"
    mark = ""
    if row.threshold:
        mark = f'<rect class="mark" x="{max(0.0, row.threshold_part * 100 - 0.3):.2f}" width="0.6" height="6"/>'
    return _row(
        f"<code>{escape(row.signal)}</code>",
        f"{escape(row.available)}, {escape(threshold)}",
        _bar(row.part, f"{row.signal}: {row.available}, {threshold}", mark, is_short=row.is_met),
    )


def _share(share: ResourceRow) -> str:
    words = f"{share.allocatable} of {share.capacity}"
    return _row(f"<code>{escape(share.resource)}</code>", escape(words), _bar(share.part, f"{share.resource}: {words}"))


def _row(name: str, words: str, bar: str) -> str:
    return f'<div class="row">{name}<span class="soft">{words}</span></div>{bar}'


def _bar(part: float, words: str, mark: str = "", *, is_short: bool = False) -> str:
    return (
        f'<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{escape(words)}">'
        f'<rect class="fill{" short" if is_short else ""}" width="{part * 100:.2f}" height="6"/>{mark}</svg>'
    )


def _settings(settings: Iterable[Setting]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(value)}</td><td>{escape(origin)}</td></tr>"
        for name, value, origin in settings
    )
    if not rows:
        return ""
    head = "<tr><th>setting</th><th>value</th><th>from</th></tr>"
    return (
        "<details><summary>Settings that are no defaults</summary>"
        f'<div class="table"><table id="settings"><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>'
    )


def ago(seconds: float) -> str:
    """Return how long ago something was, for people."""
    if seconds < 1:
        return "just now"
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 7200 else f"{seconds / 3600:.0f} h ago"
