"""fake-kubelet beside the real kubelet: same machine, same control plane, same run.

`python -m tests.bench.side_by_side` prints a table in Markdown. It needs root, for the kubelet.
"""

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import report
from tests.bench.proc import Footprint, footprint
from tests.bench.report import Figures
from tests.bench.subjects import SUBJECTS, Subject
from tests.cluster import build
from tests.cluster.audit import requests_of
from tests.cluster.command import CommandFailed, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView, is_ready
from tests.cluster.process import StartFailed
from tests.cluster.real_kubelet import RealKubelet

SETTLE_SECONDS = 20.0
READY_WITHIN_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: where it happens and what it compares."""

    cluster: ControlPlane
    directory: Path
    names: list[str]

    def subject(self, name: str, purpose: str) -> Subject:
        """A program on a node that the cluster has never seen."""
        node_name = f"{name}-{purpose}"
        directory = self.directory / node_name
        directory.mkdir()
        return SUBJECTS[name](self.cluster, node_name, directory)

    def time_starts(self, rounds: int) -> dict[str, list[float]]:
        """Seconds from exec to Ready, the programs taking turns so that both see the same weather."""
        seconds: dict[str, list[float]] = {name: [] for name in self.names}
        for number in range(rounds):
            for name in self.names:
                _tell(f"start {number + 1} of {rounds}: {name}")
                seconds[name].append(self._time_start(self.subject(name, f"start-{number}")))
        return seconds

    def _time_start(self, subject: Subject) -> float:
        try:
            subject.prepare()
            return _seconds_to_ready(self.cluster, subject)
        finally:
            subject.stop()
            # A node left behind would keep the controllers busy during later measurements.
            self.cluster.kubectl("delete", "node", subject.node_name, "--ignore-not-found")

    def observe(self, seconds: float, starts: dict[str, list[float]]) -> dict[str, Figures]:
        """Run all programs together, and see at the end what each has cost."""
        subjects = {name: self.subject(name, "steady") for name in self.names}
        with ExitStack() as running:
            for subject in subjects.values():
                running.callback(subject.stop)
                subject.prepare()
                _seconds_to_ready(self.cluster, subject)
            settle = min(SETTLE_SECONDS, seconds / 3)
            _tell(f"all are Ready and run together for {seconds:.0f} s")
            time.sleep(settle)
            since, before = datetime.now(UTC), {name: _cost(subject) for name, subject in subjects.items()}
            time.sleep(seconds - settle)
            until, after = datetime.now(UTC), {name: _cost(subject) for name, subject in subjects.items()}
            fakecri = [footprint(s.fakecri.pid) for s in subjects.values() if isinstance(s, RealKubelet)]
        return {
            name: Figures(
                starts=starts[name],
                since=since,
                until=until,
                before=before[name],
                after=after[name],
                requests=requests_of(subject.node_name, self.cluster.audit_log),
                runtime=fakecri[0] if isinstance(subject, RealKubelet) else None,
            )
            for name, subject in subjects.items()
        }


def _seconds_to_ready(cluster: ControlPlane, subject: Subject) -> float:
    """Execute the program and wait until the API server tells a watcher that its node is Ready."""
    with NodeView(cluster, subject.node_name).watch(READY_WITHIN_SECONDS) as states:
        start = time.monotonic()
        subject.start()
        if not any(is_ready(node) for node in states):
            raise subject.process.failure(f"is not Ready after {READY_WITHIN_SECONDS} s")
        return time.monotonic() - start


def _cost(subject: Subject) -> Footprint:
    if not subject.process.running:
        raise subject.process.failure("ended while it was measured")
    return footprint(subject.process.pid)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long both run together (120)")
    parser.add_argument("--starts", type=int, default=5, help="how often each is started (5)")
    parser.add_argument("--only", choices=sorted(SUBJECTS), help="measure one of them alone")
    return parser.parse_args()


def main() -> int:
    """Measure, print the table; 1 if something did not run."""
    arguments = _arguments()
    names = [arguments.only] if arguments.only else list(SUBJECTS)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            directory = Path(scratch)
            with ControlPlane(directory / "control-plane", binaries=build.binaries()) as cluster:
                bench = Bench(cluster, directory, names)
                figures = bench.observe(arguments.seconds, bench.time_starts(arguments.starts))
            peer = run([str(cluster.bin / "kubelet"), "--version"])
    except (build.NoControlPlane, CommandFailed, StartFailed) as problem:
        _tell(f"nothing measured: {problem}")
        return 1
    print(report.markdown(figures, peer=peer.split()[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
