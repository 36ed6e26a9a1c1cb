"""The same faults for fake-kubelet and the real kubelet, at the same time: who is back sooner, who asks more often?

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
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

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
from tests.parity.scrape import Served

_REQUESTS = "rest_client_requests_total"
_PATIENCE_SECONDS = 45.0
_STORM_SECONDS = 15.0
_REST_SECONDS = 12.0  # a renewal between two faults, so that none sees the traces of the one before


@dataclass
class Subject:
    """One program behind a proxy of its own."""

    name: str
    program: RealKubelet | AgentProcess
    member: Member
    proxy: FaultProxy
    cluster: ControlPlane
    port: int  # of its own API
    token: Path  # of its service account, where it has one
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # fault → seconds, once a round
    asked: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

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
        sent, since, began = subject.requests(), datetime.now(UTC), time.monotonic()
        fault.begin(subject)
        took = 0.0
        if fault.from_begin:
            took = _recovery(subject, since, began, self._seconds)
        time.sleep(max(0.0, began + (fault.seconds or self._seconds) - time.monotonic()))
        subject.asked[fault.name].append(self._asked(fault, subject, since, sent))
        end, ended = datetime.now(UTC), time.monotonic()
        fault.end(subject)
        healed = _recovery(subject, end, ended, _PATIENCE_SECONDS)
        subject.took[fault.name].append(took if fault.from_begin else healed)

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
        return member.renewed_at() > since and member.is_whole()

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
        Fault("connections reset on arrival", lambda s: s.proxy.set(kill=True, refuse=True), lambda s: s.proxy.set()),
        Fault("black hole, no RST", lambda s: s.proxy.set(silent=True), lambda s: s.proxy.set(kill=True)),
        Fault("killed in the middle of requests", lambda s: s.proxy.set(cut_answers=True), lambda s: s.proxy.set()),
        Fault("certificate of another CA", impostor, home),
        Fault(
            "etcd without space",
            lambda s: alarm(cluster.layout.etcd, on=True),
            lambda s: alarm(cluster.layout.etcd, on=False),
            seen_by_server=True,
        ),
        Fault("process stalled 15 s", _stall, _unstall, seconds=15.0, stops_it=True),
        Fault("others write the Lease without pause", _storm, seen_by_server=True),
        Fault("Lease taken by another holder", _take, seen_by_server=True, from_begin=True),
        Fault("Lease deleted", lambda s: s.member.delete_lease(), seen_by_server=True, from_begin=True),
        Fault("Node deleted", lambda s: s.member.delete_node(), _make_again, seen_by_server=True, from_begin=True),
        Fault("rights taken away", _revoke, _grant, seen_by_server=True, by_token=True),
        Fault("token spoilt", _spoil_token, _renew_token, by_token=True),
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


def _take(subject: Subject) -> None:
    subject.member.patch_lease({"spec": {"holderIdentity": "somebody-else"}})


def _storm(subject: Subject) -> None:
    """Until shortly before the end of the fault, in a thread of its own."""

    def write() -> None:
        end = time.monotonic() + _STORM_SECONDS
        while time.monotonic() < end:
            subject.member.patch_lease({"metadata": {"annotations": {"storm": str(time.monotonic_ns())}}})

    threading.Thread(target=write).start()


def _stall(subject: Subject) -> None:
    os.kill(subject.program.pid, signal.SIGSTOP)


def _unstall(subject: Subject) -> None:
    os.kill(subject.program.pid, signal.SIGCONT)


def _revoke(subject: Subject) -> None:
    subject.cluster.kubectl("delete", "clusterrolebinding", subject.member.name)


def _grant(subject: Subject) -> None:
    account = f"--serviceaccount=default:{subject.member.name}"
    words = ("create", "clusterrolebinding", subject.member.name, "--clusterrole=cluster-admin", account)
    subject.cluster.kubectl(*words)


def _spoil_token(subject: Subject) -> None:
    subject.token.write_text("spoilt")


def _renew_token(subject: Subject) -> None:
    subject.token.write_text(subject.cluster.kubectl("create", "token", subject.member.name))


def head(subjects: Sequence[Subject]) -> str:
    """The first lines of the table."""
    columns = [f"{subject.name}: {figure}" for figure in ("back after (s)", "asked") for subject in subjects]
    return f"| fault | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}"


def row(fault: Fault, subjects: Sequence[Subject]) -> str:
    """Time to recover and requests, side by side: the median of all rounds, and the extremes."""
    took = [_spread(subject.took[fault.name], ".1f") for subject in subjects]
    asked = [_spread(subject.asked[fault.name], ".0f") for subject in subjects]
    return f"| {fault.name} | {' | '.join(took + asked)} |"


def _spread(values: Sequence[float], form: str) -> str:
    low, middle, high = (_told(value, form) for value in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def _told(value: float, form: str) -> str:
    return "never" if math.isinf(value) else format(value, form)


def subjects_of(cluster: ControlPlane, directory: Path, running: ExitStack, *, by_token: bool) -> list[Subject]:
    """Both programs, started and Ready."""
    admin, subjects = Admin(cluster), []
    for program in ("kubelet", "fake-kubelet"):
        name = f"{program}-by-token" if by_token else program
        folder = directory / name
        folder.mkdir()
        proxy, token = running.enter_context(FaultProxy(cluster.layout.apiserver)), folder / "token"
        user = {"tokenFile": str(token)} if by_token else {}
        kubeconfig = through(proxy.port, cluster.node_kubeconfig(name), folder / "through-proxy", **user)
        process, port = _process(program, name, cluster, folder, kubeconfig)
        member = Member(admin, name, process if isinstance(process, AgentProcess) else process.process)
        subjects.append(Subject(program, process, member, proxy, cluster, port, token))
        if by_token:
            cluster.kubectl("create", "serviceaccount", name)
            _grant(subjects[-1])
            _renew_token(subjects[-1])
        process.start()
        running.callback(process.stop)
    for subject in subjects:
        eventually(subject.member.is_whole, within=60)
    return subjects


def _process(
    program: str, name: str, cluster: ControlPlane, folder: Path, kubeconfig: Path
) -> tuple[RealKubelet | AgentProcess, int]:
    if program == "kubelet":
        open_to_all = "--authorization-mode=AlwaysAllow"  # it is asked for its metrics while nobody can tell who may
        kubelet = RealKubelet(cluster, name, folder, flags=[open_to_all], kubeconfig=kubeconfig)
        return kubelet, kubelet.port
    port, healthz_port = free_ports(2)
    flags = (f"--kubeconfig={kubeconfig}", f"--hostname-override={name}", f"--root-dir={folder}")
    ports = (f"--port={port}", f"--healthz-port={healthz_port}", f"--cert-dir={folder}")
    return AgentProcess(*flags, *ports, log=folder / "log"), port


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Break things, print the table; 1 if something did not run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long each fault lasts (30)")
    parser.add_argument("--rounds", type=int, default=1, help="how often each happens (1)")
    parser.add_argument("--only", default="", help="part of a fault's name, to have just that")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ExitStack() as running:
            directory = Path(scratch)
            cluster = running.enter_context(ControlPlane(directory / "plane", binaries=build.binaries()))
            faults = [fault for fault in faults_of(cluster, directory) if arguments.only in fault.name]
            for by_token in (False, True):
                chosen = [fault for fault in faults if fault.by_token == by_token]
                if not chosen:
                    continue
                subjects = subjects_of(cluster, directory, running, by_token=by_token)
                Bench(cluster, subjects, arguments.seconds).run(chosen * arguments.rounds)
                print(head(subjects), *(row(fault, subjects) for fault in chosen), sep="\n")
    except (build.NoControlPlane, CommandFailed, StartFailed) as problem:
        _tell(f"nothing measured: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
