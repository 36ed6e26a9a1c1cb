"""The same faults for fake-kubelet and the real kubelet, side by side: who is back sooner, who asks more often?

`python -m tests.bench.faults` prints a table in Markdown. It needs root, for the kubelet.
"""

import argparse
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median

from tests.cluster import build
from tests.cluster.agent_process import OPEN, AgentProcess
from tests.cluster.api import Refused
from tests.cluster.audit import requests_of
from tests.cluster.command import CommandFailed, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.process import StartFailed
from tests.cluster.proxy import FaultProxy, through
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.faults.etcd import alarm
from tests.faults.member import Member
from tests.parity.scrape import Served

_KINDS = ("kubelet", "fake-kubelet")
_REQUESTS = "rest_client_requests_total"
_PATIENCE_SECONDS = 45.0
_LONGEST_INTERVAL = 11.0  # seconds from one heartbeat to the next: 10 with 4 % of jitter, and the machine's own delays
_LONGER_THAN_AN_INTERVAL = 12.0


@dataclass
class Subject:
    """One program behind a proxy of its own."""

    kind: str
    program: RealKubelet | AgentProcess
    member: Member
    proxy: FaultProxy
    cluster: ControlPlane
    port: int  # of its own API
    token: Path  # of its service account, where it has one
    took: dict[str, float] = field(default_factory=dict)  # fault → seconds
    asked: dict[str, int] = field(default_factory=dict)
    intervals: list[float] = field(default_factory=list)  # between two heartbeats, while all is well

    def feel_the_pulse(self) -> None:
        """Two heartbeats while all is well; a fault that begins just after the second finds all at the same phase."""
        first = self._next_heartbeat()
        self.intervals.append((self._next_heartbeat() - first).total_seconds())

    def _next_heartbeat(self) -> datetime:
        return self.heartbeat_after(eventually(self.member.renewed_at))

    def heartbeat_after(self, moment: datetime) -> datetime:
        """When the first one was; returns just after it."""

        def later() -> datetime:
            renewed_at = self.member.renewed_at()
            assert renewed_at > moment
            return renewed_at

        return eventually(later, within=_PATIENCE_SECONDS, every=0.05)

    def stop(self) -> None:
        """Keep it from running at all."""
        os.kill(self.program.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run again."""
        os.kill(self.program.pid, signal.SIGCONT)

    def requests(self) -> int:
        """How many it has sent, by its own count; those that wait for an answer are not in it yet."""
        page = Served(self.cluster, self.program.pid, self.port).page("/metrics")
        return int(sum(told.value for name, told in page.numbers.items() if name.startswith(_REQUESTS)))


@dataclass(frozen=True, slots=True)
class Fault:
    """Something bad, and its end."""

    name: str
    begin: Callable[[Subject], None]
    end: Callable[[Subject], None] = lambda _: None
    seconds: float | None = None  # None: as long as the command line says
    seen_by_server: bool = False  # its requests are in the audit log; else who sends them has counted them
    stops_it: bool = False  # it can neither ask nor be asked
    by_token: bool = False  # for a node that is a service account; the rest is for a node with a certificate
    from_begin: bool = False  # recovery counts from the beginning: nobody ends this fault
    for_all: bool = False  # there is one server: it begins and ends for all at once, by the first of them


class Bench:
    """A cluster with some pairs of both programs in it."""

    def __init__(self, cluster: ControlPlane, subjects: Sequence[Subject], seconds: float, threads: Executor) -> None:
        self._cluster, self._subjects, self._seconds, self._threads = cluster, subjects, seconds, threads
        self._together = threading.Barrier(len(subjects))

    def run(self, faults: Sequence[Fault]) -> None:
        """Every fault, for all at the same time, or nearly: each begins just after a heartbeat."""
        for fault in faults:
            _tell(fault.name)
            if fault.for_all:
                self._for_each(Subject.feel_the_pulse)
                self._fall_into_step()
            self._for_each(lambda subject, fault=fault: self._suffer(fault, subject))  # type: ignore[misc]

    def _for_each(self, work: Callable[[Subject], object]) -> None:
        list(self._threads.map(work, self._subjects))  # the list raises what was raised

    def _fall_into_step(self) -> None:
        """Who missed a heartbeat has the next one as soon as it may, and all may at the same moment."""
        self._for_each(Subject.stop)
        time.sleep(_LONGER_THAN_AN_INTERVAL)
        since = datetime.now(UTC)
        self._for_each(Subject.go_on)
        self._for_each(lambda subject: subject.heartbeat_after(since))

    def _suffer(self, fault: Fault, subject: Subject) -> None:
        if not fault.for_all:
            subject.feel_the_pulse()
        sent, since, began = subject.requests(), datetime.now(UTC), time.monotonic()
        self._do(fault, fault.begin, subject)
        took = 0.0
        if fault.from_begin:
            took = _recovery(subject, since, began, self._seconds)
        time.sleep(max(0.0, began + (fault.seconds or self._seconds) - time.monotonic()))
        subject.asked[fault.name] = self._asked(fault, subject, since, sent)
        end, ended = datetime.now(UTC), time.monotonic()
        self._do(fault, fault.end, subject)
        healed = _recovery(subject, end, ended, _PATIENCE_SECONDS)
        subject.took[fault.name] = took if fault.from_begin else healed

    def _do(self, fault: Fault, act: Callable[[Subject], None], subject: Subject) -> None:
        if not fault.for_all:
            act(subject)
            return
        if self._together.wait() == 0:
            act(subject)
        self._together.wait()

    def _asked(self, fault: Fault, subject: Subject, since: datetime, sent: int) -> int:
        if fault.stops_it:
            return 0
        if not fault.seen_by_server:
            return subject.requests() - sent
        user = f"system:serviceaccount:default:{subject.member.name}" if fault.by_token else None
        requests = requests_of(subject.member.name, self._cluster.audit_log, user=user)
        return len([request for request in requests if request.received >= since])


def _recovery(subject: Subject, since: datetime, began: float, within: float) -> float:
    """Seconds until the node was well; infinite if it was not within the time."""
    member = subject.member

    def is_back() -> bool:
        return member.renewed_at() > since and member.is_whole() and member.is_described()

    try:
        eventually(is_back, within=within, every=0.05)
    except AssertionError:
        return math.inf
    return time.monotonic() - began


def faults_of(cluster: ControlPlane, directory: Path) -> list[Fault]:
    """The catalogue."""
    other = _another_authority(cluster, directory)

    def impostor(subject: Subject) -> None:
        port = subject.proxy.impostor(other / "apiserver.crt", other / "apiserver.key")
        subject.proxy.set(kill=True, target_port=port)

    def home(subject: Subject) -> None:
        subject.proxy.set(kill=True, target_port=cluster.layout.apiserver)

    return [
        Fault(
            "API server stopped",
            lambda _: cluster.stop_component("kube-apiserver"),
            lambda _: cluster.start_component("kube-apiserver"),
            for_all=True,
        ),
        Fault("connections reset on arrival", lambda s: s.proxy.set(kill=True, refuse=True), lambda s: s.proxy.set()),
        Fault("black hole, no RST", lambda s: s.proxy.set(silent=True), lambda s: s.proxy.set(kill=True)),
        Fault("killed in the middle of requests", lambda s: s.proxy.set(cut_answers=True), lambda s: s.proxy.set()),
        Fault(
            "500 ms of latency, 5 % loss",
            lambda s: s.proxy.set(delay_seconds=0.5, loss=0.05),
            lambda s: s.proxy.set(),
            from_begin=True,
        ),
        Fault("certificate of another CA", impostor, home),
        Fault(
            "etcd without space",
            lambda _: alarm(cluster.layout.etcd, on=True),
            lambda _: alarm(cluster.layout.etcd, on=False),
            seen_by_server=True,
            for_all=True,
        ),
        Fault("process stalled 15 s", Subject.stop, Subject.go_on, seconds=15.0, stops_it=True),
        Fault("others write the Lease without pause", _storm, seen_by_server=True, from_begin=True),
        Fault("Lease taken by another holder", _take, seen_by_server=True, from_begin=True),
        Fault("Lease deleted", lambda s: s.member.delete_lease(), seen_by_server=True, from_begin=True),
        Fault("Node deleted", lambda s: s.member.delete_node(), _make_again, seen_by_server=True, from_begin=True),
        Fault("Node deleted and made by another", _replace, seen_by_server=True, from_begin=True),
        Fault("rights taken away", _revoke, _grant, seen_by_server=True, by_token=True),
        Fault("token revoked", _revoke_token, _issue_token, by_token=True),
    ]


def _another_authority(cluster: ControlPlane, directory: Path) -> Path:
    other = directory / "other-ca"
    kubeadm = [str(cluster.bin / "kubeadm"), "init", "phase", "certs"]
    run([*kubeadm, "ca", "--cert-dir", str(other)])
    names = ["--apiserver-cert-extra-sans", "127.0.0.1", "--apiserver-advertise-address", "192.0.2.1"]
    run([*kubeadm, "apiserver", "--cert-dir", str(other), *names])
    return other


def _make_again(subject: Subject) -> None:
    with suppress(Refused):  # it is there already
        subject.member.create_node()


def _replace(subject: Subject) -> None:
    subject.member.delete_node()
    _make_again(subject)


def _take(subject: Subject) -> None:
    subject.member.patch_lease({"spec": {"holderIdentity": "somebody-else"}})


def _storm(subject: Subject) -> None:
    """In a thread of its own, until the first heartbeat is through for certain."""

    def write() -> None:
        end = time.monotonic() + _LONGER_THAN_AN_INTERVAL
        while time.monotonic() < end:
            subject.member.patch_lease({"metadata": {"annotations": {"storm": str(time.monotonic_ns())}}})

    threading.Thread(target=write).start()


def _revoke(subject: Subject) -> None:
    subject.cluster.kubectl("delete", "clusterrolebinding", subject.member.name)


def _grant(subject: Subject) -> None:
    account = f"--serviceaccount=default:{subject.member.name}"
    words = ("create", "clusterrolebinding", subject.member.name, "--clusterrole=cluster-admin", account)
    subject.cluster.kubectl(*words)


def _revoke_token(subject: Subject) -> None:
    subject.cluster.kubectl("delete", "serviceaccount", subject.member.name)


def _issue_token(subject: Subject) -> None:
    subject.cluster.kubectl("create", "serviceaccount", subject.member.name)
    subject.token.write_text(subject.cluster.kubectl("create", "token", subject.member.name))


def table(faults: Sequence[Fault], subjects: Sequence[Subject]) -> str:
    """Time to recover and requests, side by side, and the heartbeats that were lost while all was well."""
    kinds = {kind: [subject for subject in subjects if subject.kind == kind] for kind in _KINDS}
    columns = [f"{kind}: {figure}" for figure in ("back after (s)", "asked") for kind in kinds]
    lines = [f"| fault | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for fault in faults:
        took = [_spread([subject.took[fault.name] for subject in alike], ".1f") for alike in kinds.values()]
        asked = [_spread([subject.asked[fault.name] for subject in alike], ".0f") for alike in kinds.values()]
        lines.append(f"| {fault.name} | {' | '.join(took + asked)} |")
    return "\n".join([*lines, "", *(_pulse(kind, alike) for kind, alike in kinds.items())])


def _pulse(kind: str, subjects: Sequence[Subject]) -> str:
    intervals = [interval for subject in subjects for interval in subject.intervals]
    late = len([interval for interval in intervals if interval > _LONGEST_INTERVAL])
    between = f"{min(intervals):.2f} to {max(intervals):.2f} s"
    return (
        f"- {kind}: {len(intervals)} intervals between heartbeats outside the faults, {between}, {late} heartbeats lost"
    )


def _spread(values: Sequence[float], form: str) -> str:
    """The median, and the extremes."""
    low, middle, high = (_told(value, form) for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _told(value: float, form: str) -> str:
    return "never" if math.isinf(value) else format(value, form)


def subjects_of(
    cluster: ControlPlane, directory: Path, running: ExitStack, *, pairs: int, by_token: bool
) -> list[Subject]:
    """Pairs of both programs, started and Ready."""
    subjects = []
    for number, kind in product(range(pairs), _KINDS):
        name = f"{kind}-{'token' if by_token else 'certificate'}-{number}"
        folder = directory / name
        folder.mkdir()
        proxy, token = running.enter_context(FaultProxy(cluster.layout.apiserver)), folder / "token"
        user = {"tokenFile": str(token)} if by_token else {}
        kubeconfig = through(proxy.port, cluster.node_kubeconfig(name), folder / "through-proxy", **user)
        process, port = _process(kind, name, cluster, folder, kubeconfig)
        member = Member(cluster, name, process if isinstance(process, AgentProcess) else process.process)
        subjects.append(Subject(kind, process, member, proxy, cluster, port, token))
        if by_token:
            _grant(subjects[-1])
            _issue_token(subjects[-1])
        process.start()
        running.callback(process.stop)
    for subject in subjects:
        eventually(subject.member.is_whole, within=60)
    return subjects


def _process(
    kind: str, name: str, cluster: ControlPlane, folder: Path, kubeconfig: Path
) -> tuple[RealKubelet | AgentProcess, int]:
    if kind == "kubelet":
        open_to_all = "--authorization-mode=AlwaysAllow"  # it is asked for its metrics while nobody can tell who may
        kubelet = RealKubelet(cluster, name, folder, flags=[open_to_all], kubeconfig=kubeconfig)
        return kubelet, kubelet.port
    port, healthz_port = free_ports(2)
    flags = (f"--kubeconfig={kubeconfig}", f"--hostname-override={name}", f"--root-dir={folder}")
    ports = (f"--port={port}", f"--healthz-port={healthz_port}", "--read-only-port=0", f"--cert-dir={folder}")
    return AgentProcess(*flags, *ports, OPEN, log=folder / "log"), port


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Break things, print the table; 1 if something did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts (30)")
    parser.add_argument("--pairs", type=int, default=1, help="how many of both at the same time (1)")
    parser.add_argument("--only", default="", help="part of a fault's name, to have just that")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ExitStack() as running:
            directory = Path(scratch)
            cluster = running.enter_context(ControlPlane(directory / "plane", binaries=build.binaries()))
            # To the end: a server that is started again dies with the thread that did it.
            threads = running.enter_context(ThreadPoolExecutor(arguments.pairs * len(_KINDS)))
            faults = [fault for fault in faults_of(cluster, directory) if arguments.only in fault.name]
            for by_token in (False, True):
                chosen = [fault for fault in faults if fault.by_token == by_token]
                if not chosen:
                    continue
                subjects = subjects_of(cluster, directory, running, pairs=arguments.pairs, by_token=by_token)
                Bench(cluster, subjects, arguments.seconds, threads).run(chosen)
                print(table(chosen, subjects))
    except (build.NoControlPlane, CommandFailed, StartFailed) as problem:
        _tell(f"nothing measured: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
