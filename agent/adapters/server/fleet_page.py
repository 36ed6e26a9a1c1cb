"""The status page of a fleet: how many nodes are in which state, and how old their leases are; no line per node."""

from html import escape

from agent.core.fleet_view import READY, STATES, FleetView, age_histogram, percentile


def fleet_state(view: FleetView) -> tuple[str, bool]:
    """Return the fleet's state in a word, and whether that is good."""
    if not view.total:
        return "no nodes", True
    return ("Ready", True) if view.ready == view.total else (f"{view.ready} of {view.total} Ready", False)


def fleet_main(view: FleetView) -> str:
    """Return the main part of the page."""
    word, is_good = fleet_state(view)
    states = "".join(
        _row(state, count, view.total, is_short=state != READY) for state in STATES if (count := view.states.get(state))
    )
    ages = "".join(_row(label, count, len(view.lease_ages)) for label, count in age_histogram(view.lease_ages) if count)
    p50, p99 = (1000 * percentile(view.latencies, percent) for percent in (50, 99))
    return (
        f"<header><h1>fleet {escape(view.name)}</h1>"
        f'<span id="state" class="pill {"good" if is_good else "bad"}">{escape(word)}</span></header>'
        f'<section><h2>Nodes</h2><div id="nodes">{states or "<p>There are none.</p>"}</div></section>'
        f'<section><h2>Leases</h2><div id="leases">{ages}</div>'
        f'<p id="lease">The oldest lease was renewed {view.oldest_seconds:.0f} s ago; '
        f"{view.renewals_per_second:.0f} renewals per second; {view.missed} renewals were missed since the start.</p>"
        "</section>"
        f'<section><h2>Process</h2><p id="process">{view.pods} pods; {view.rss_bytes / 2**20:.0f} MiB; the API server '
        f"answers within {p50:.0f} ms (median), {p99:.0f} ms (99 of 100).</p></section>"
    )


def _row(label: str, count: int, whole: int, *, is_short: bool = False) -> str:
    words = f"{count} of {whole}"
    return (
        f'<div class="row"><code>{escape(label)}</code><span class="soft">{words}</span></div>'
        f'<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}: {words}"><rect class="fill{" short" if is_short else ""}" '
        f'width="{100 * count / whole:.2f}" height="6"/></svg>'
    )
