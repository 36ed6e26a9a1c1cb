"""fake-kubelet for a long time: does it grow, and does it miss a renewal?

`python -m tests.bench.soak --minutes 30` prints a table in Markdown; 1 if it grew, a renewal was late, the node was not
Ready all the time, or told an unchanged status too often.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import linear_regression
from typing import Any

from tests.bench.proc import footprint
from tests.bench.subjects import FakeKubelet
from tests.cluster import build
from tests.cluster.audit import Request, lease_intervals, requests_of
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import is_ready
from tests.cluster.process import StartFailed

_SETTLE_SECONDS = 60.0  # first reports and the first idle connections are over
_EVERY_SECONDS = 5.0
_LATEST_SECONDS = 10.4 + 1.0  # kubelet's jitter, and a machine that is busy
_NOISE_KIB_PER_MINUTE = 20.0
_REPORT_MINUTES = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process cost at one moment."""

    minute: float
    rss_kib: int
    sockets: int


def observe(subject: FakeKubelet, minutes: float) -> list[Sample]:
    """Look at the process every few seconds."""
    began, samples = time.monotonic(), []
    while (passed := time.monotonic() - began) < minutes * 60:
        if not subject.process.running:
            raise subject.process.failure("ended")
        sockets = _sockets(subject.process.pid)
        samples.append(Sample(passed / 60, footprint(subject.process.pid).rss_kib, sockets))
        time.sleep(_EVERY_SECONDS)
    return samples


def _sockets(pid: int) -> int:
    entries = Path(f"/proc/{pid}/fd").iterdir()
    return sum(str(entry.readlink()).startswith("socket:") for entry in entries if entry.is_symlink())


def stayed_ready(node: dict[str, Any], since: datetime) -> bool:
    """Whether the node is Ready, and has been so since then."""
    (changed,) = [one["lastTransitionTime"] for one in node["status"]["conditions"] if one["type"] == "Ready"]
    return is_ready(node) and datetime.fromisoformat(changed) < since


def report(samples: Sequence[Sample], requests: Sequence[Request], minutes: float) -> tuple[str, bool]:
    """The table, and whether all is well."""
    intervals = lease_intervals(requests)
    reports = sum(request.target == "nodes/status" for request in requests)
    slope = linear_regression([s.minute for s in samples], [s.rss_kib for s in samples]).slope
    growth = samples[-1].sockets - samples[0].sockets
    good = slope <= _NOISE_KIB_PER_MINUTE and growth <= 0 and max(intervals) <= _LATEST_SECONDS
    good = good and reports <= 1 + minutes / _REPORT_MINUTES
    lines = [
        f"| soak of {minutes:g} min | |",
        "|---|---:|",
        f"| VmRSS, first / last (MiB) | {samples[0].rss_kib / 1024:.2f} / {samples[-1].rss_kib / 1024:.2f} |",
        f"| slope of VmRSS (KiB/min) | {slope:+.1f} |",
        f"| open sockets, first / most / last | {samples[0].sockets} / {max(s.sockets for s in samples)} / "
        f"{samples[-1].sockets} |",
        f"| renewals | {len(intervals) + 1} |",
        f"| seconds between renewals, least / most | {min(intervals):.2f} / {max(intervals):.2f} |",
        f"| status reports | {reports} |",
    ]
    return "\n".join(lines), good


def main() -> int:
    """Soak, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (30)")
    minutes = parser.parse_args().minutes
    try:
        with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
            directory = Path(scratch)
            with ControlPlane(directory / "control-plane", binaries=build.binaries()) as cluster:
                subject = FakeKubelet(cluster, "soak", directory)
                subject.prepare()
                subject.start()
                try:
                    time.sleep(_SETTLE_SECONDS)
                    since = datetime.now(UTC)
                    samples = observe(subject, minutes)
                    is_steady = stayed_ready(cluster.get("node", "soak"), since)
                finally:
                    subject.stop()
                requests = [one for one in requests_of("soak", cluster.audit_log) if one.received > since]
                text, good = report(samples, requests, minutes)
    except (build.NoControlPlane, StartFailed) as problem:
        print(f"nothing measured: {problem}", file=sys.stderr)
        return 1
    print(f"{text}\n| Ready all the time | {'yes' if is_steady else 'no'} |")
    return 0 if good and is_steady else 1


if __name__ == "__main__":
    sys.exit(main())
