"""The same faults for fake-kubelet and the real kubelet, at the same time: who is back sooner, who asks more often?

`python -m tests.bench.faults` prints a table in Markdown. It needs root, for the kubelet.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.api import requests_of
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess
from tests.cluster.command import CommandFailed, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.process import StartFailed
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.faults.etcd import alarm
from tests.faults.member import Admin, Member, Refused, through
from tests.faults.proxy import FaultProxy

_PATIENCE_SECONDS = 45.0
_REST_SECONDS = 12.0  # a renewal between two faults, so that none sees the traces of the one before


@dataclass
class Subject:
    """One program behind a proxy of its own."""

    name: str
    member: Member
    proxy: FaultProxy
    pid: Callable[[], int]
    took: list[float | None] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something bad, and its end."""

    name: str
    begin: Callable[[Subject], None]
    end: Callable[[Subject], None] = lambda _: None
    seconds: float | None = None  # None: as long as the command line says
    seen_by_server: bool = False  # its requests are in the audit log; else connections are counted at the proxy
    from_begin: bool = False  # recovery counts from the beginning: nobody ends this fault


class Bench:
    """A cluster with both programs in it."""

    def __init__(self, cluster: ControlPlane, subjects: Sequence[Subject], seconds: float) -> None:
        self._cluster, self._subjects, self._seconds = cluster, subjects, seconds

    def run(self, faults: Sequence[Fault]) -> None:
        """Every fault, once, for all at the same time."""
        for fault in faults:
            _tell(fault.name)
            self._in_parallel(lambda subject, fault=fault: self._suffer(fault, subject))  # type: ignore[misc]
            time.sleep(_REST_SECONDS)

    def _in_parallel(self, work: Callable[[Subject], None]) -> None:
        threads = [threading.Thread(target=work, args=(subject,)) for subject in self._subjects]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _suffer(self, fault: Fault, subject: Subject) -> None:
        since, attempts, began = datetime.now(UTC), subject.proxy.attempts, time.monotonic()
        fault.begin(subject)
        took: float | None = None
        if fault.from_begin:
            took = _recovery(subject, since, began, self._seconds)
        time.sleep(max(0.0, began + (fault.seconds or self._seconds) - time.monotonic()))
        subject.asked.append(self._asked(fault, subject, since, attempts))
        end, ended = datetime.now(UTC), time.monotonic()
        fault.end(subject)
        subject.took.append(took if fault.from_begin else _recovery(subject, end, ended, _PATIENCE_SECONDS))
        if fault.from_begin:
            _recovery(subject, end, ended, _PATIENCE_SECONDS)

    def _asked(self, fault: Fault, subject: Subject, since: datetime, attempts: int) -> int:
        if not fault.seen_by_server:
            return subject.proxy.attempts - attempts
        requests = requests_of(subject.member.name, self._cluster.audit_log)
        return len([request for request in requests if request.received >= since])


def _recovery(subject: Subject, since: datetime, began: float, within: float) -> float | None:
    member = subject.member

    def is_back() -> bool:
        return member.renewed_at() > since and member.is_whole()

    try:
        eventually(is_back, within=within, every=0.05)
    except AssertionError:
        return None
    return time.monotonic() - began


def faults_of(cluster: ControlPlane, directory: Path) -> list[Fault]:
    """The catalogue."""
    other = directory / "other-ca"
    kubeadm = [str(cluster.bin / "kubeadm"), "init", "phase", "certs"]
    run([*kubeadm, "ca", "--cert-dir", str(other)])
    names = ["--apiserver-cert-extra-sans", "127.0.0.1", "--apiserver-advertise-address", "192.0.2.1"]
    run([*kubeadm, "apiserver", "--cert-dir", str(other), *names])

    def impostor(subject: Subject) -> None:
        port = subject.proxy.impostor(other / "apiserver.crt", other / "apiserver.key")
        subject.proxy.set(kill=True, target_port=port)

    def make_again(subject: Subject) -> None:
        try:
            subject.member.create_node()
        except Refused:
            return  # it is there already

    return [
        Fault(
            "connections refused",
            lambda s: s.proxy.set(kill=True, refuse=True),
            lambda s: s.proxy.set(),
        ),
        Fault("black hole, no RST", lambda s: s.proxy.set(silent=True), lambda s: s.proxy.set(kill=True)),
        Fault("killed in the middle of requests", lambda s: s.proxy.set(cut_answers=True), lambda s: s.proxy.set()),
        Fault(
            "certificate of another CA",
            impostor,
            lambda s: s.proxy.set(kill=True, target_port=cluster.layout.apiserver),
        ),
        Fault(
            "etcd without space",
            lambda s: alarm(cluster.layout.etcd, on=True),
            lambda s: alarm(cluster.layout.etcd, on=False),
            seen_by_server=True,
        ),
        Fault("process stalled 15 s", _stall, lambda s: os.kill(s.pid(), signal.SIGCONT), seconds=15.0),
        Fault("Lease deleted", lambda s: s.member.delete_lease(), seen_by_server=True, from_begin=True),
        Fault("Node deleted", lambda s: s.member.delete_node(), make_again, seen_by_server=True, from_begin=True),
    ]


def _stall(subject: Subject) -> None:
    os.kill(subject.pid(), signal.SIGSTOP)


def table(faults: Sequence[Fault], subjects: Sequence[Subject]) -> str:
    """Time to recover and requests, side by side."""
    names = [subject.name for subject in subjects]
    head = [f"{name}: {figure}" for figure in ("back after (s)", "asked") for name in names]
    lines = [f"| fault | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}"]
    for number, fault in enumerate(faults):
        took = [_seconds(subject.took[number]) for subject in subjects]
        asked = [str(subject.asked[number]) for subject in subjects]
        lines.append(f"| {fault.name} | {' | '.join(took + asked)} |")
    return "\n".join(lines)


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def subjects_of(cluster: ControlPlane, directory: Path, running: ExitStack) -> list[Subject]:
    """Both programs, started and Ready."""
    admin, subjects = Admin(cluster), []
    for name in ("kubelet", "fake-kubelet"):
        proxy = running.enter_context(FaultProxy(cluster.layout.apiserver))
        folder = directory / name
        folder.mkdir()
        kubeconfig = through(proxy.port, cluster.node_kubeconfig(name), folder / "through-proxy")
        if name == "kubelet":
            kubelet = RealKubelet(cluster, name, folder, kubeconfig=kubeconfig)
            running.enter_context(kubelet)
            process = kubelet.process
        else:
            flags = (f"--kubeconfig={kubeconfig}", f"--hostname-override={name}", f"--root-dir={folder}")
            process = AgentProcess(*flags, f"--healthz-port={free_ports(1)[0]}", log=folder / "log")
            process.start()
            running.callback(process.stop)
        subjects.append(Subject(name, Member(admin, name, process), proxy, lambda process=process: process.pid))  # type: ignore[misc]
    for subject in subjects:
        eventually(subject.member.is_whole, within=60)
    return subjects


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Break things, print the table; 1 if something did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts (30)")
    parser.add_argument("--rounds", type=int, default=1, help="how often each happens (1)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ExitStack() as running:
            directory = Path(scratch)
            cluster = running.enter_context(ControlPlane(directory / "plane", binaries=build.binaries()))
            faults = faults_of(cluster, directory) * arguments.rounds
            subjects = subjects_of(cluster, directory, running)
            Bench(cluster, subjects, arguments.seconds).run(faults)
            print(table(faults, subjects))
    except (build.NoControlPlane, CommandFailed, StartFailed) as problem:
        _tell(f"nothing measured: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
