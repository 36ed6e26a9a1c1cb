"""Fixtures that all tests share: the control plane, and names for nodes."""

import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.cluster import build
from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.lacking import lacking
from tests.cluster.node_view import NodeView
from tests.cluster.process import STARTED
from tests.cluster.real_kubelet import RealKubelet
from tests.groups import GroupScheduling, group_of

_FIGURE = "figure"
_NO_CONTROL_PLANE = "no control plane to test against: "
# What a test needs, however indirectly, by its fixtures: tests are chosen by these words.
_MARKS = {"binaries": "real", "kubelet_data": "real", "metrics_server": "real", "root": "root"}
_RANK_OF_OTHERS = 2

settings.register_profile("patient", settings(), deadline=None)  # a busy machine is no fault
settings.load_profile("patient")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of all async tests."""
    return "asyncio"


@pytest.fixture(scope="session")
def root() -> None:
    """For tests that only root can run."""
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="session")
def binaries() -> Path:
    """The directory of kube-apiserver, kubelet and the others; pytest does not build them, `make test` does."""
    try:
        return build.binaries(build=False)
    except build.NoControlPlane as reason:
        lacking(f"{_NO_CONTROL_PLANE}{reason}")


@pytest.fixture(scope="session")
def control_plane(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One real cluster for the whole run; tests share it, each with nodes of its own name."""
    cluster = ControlPlane(tmp_path_factory.mktemp("control-plane"), binaries=binaries)
    try:
        cluster.start()
    except build.NoControlPlane as reason:
        lacking(f"{_NO_CONTROL_PLANE}{reason}")
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def kubelet_data() -> Path:
    """The Go program that prints what is the kubelet's own."""
    try:
        return build.built(build.KUBELET_DATA, build=False) / "kubeletdata"
    except build.NoControlPlane as reason:
        lacking(f"{_NO_CONTROL_PLANE}{reason}")


@pytest.fixture(scope="session")
def metrics_server() -> Path:
    """The binary of metrics-server."""
    try:
        return build.built(build.METRICS_SERVER, build=False) / "metrics-server"
    except build.NoControlPlane as reason:
        lacking(f"{_NO_CONTROL_PLANE}{reason}")


@pytest.fixture
def node_name(request: pytest.FixtureRequest) -> str:
    """A node name that tells the test and is new in every run."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_")).strip("-")
    return f"{words[:40].strip('-')}-{secrets.token_hex(3)}"


@pytest.fixture
def start_kubelet(
    root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., RealKubelet]]:
    """Starts real kubelets by node name, with RealKubelet's options, and stops them after the test."""
    with ExitStack() as running:

        def start(node_name: str, **options: Any) -> RealKubelet:
            # Not tmp_path: the test's name would make the paths of the kubelet's sockets too long.
            kubelet = RealKubelet(control_plane, node_name, tmp_path_factory.mktemp("kubelet"), **options)
            try:
                return running.enter_context(kubelet)
            except build.NoControlPlane as reason:
                lacking(f"{_NO_CONTROL_PLANE}{reason}")

        yield start


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Notes a measured figure, to be printed at the end of the run."""

    def note(name: str, value: str) -> None:
        request.node.user_properties.append((_FIGURE, (name, value)))

    return note


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    """Starts fake-kubelet processes with the given flags, and stops them after the test."""
    with ExitStack() as running:

        def start(*flags: str, env: Mapping[str, str] | None = None) -> AgentProcess:
            agent = AgentProcess(*flags, log=tmp_path / "fake-kubelet.log", env=env)
            running.callback(agent.stop)
            agent.start()
            return agent

        yield start


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark each test with what it needs."""
    for fixture, mark in _MARKS.items():
        if fixture in getattr(item, "fixturenames", ()):
            item.add_marker(mark)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """Keep groups together where that is wanted."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)  # after the order was made random
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups that take longest, so that no process has them to itself at the end."""
    ranks: dict[str, int] = {}
    for item in items:
        group = group_of(item.nodeid)
        ranks[group] = min(_rank(item), ranks.get(group, _RANK_OF_OTHERS))
    items.sort(key=lambda item: ranks[group_of(item.nodeid)])


def _rank(item: pytest.Item) -> int:
    marks = {mark.name for mark in item.iter_markers()}
    return 0 if "slow" in marks else 1 if marks & {"real", "root"} else _RANK_OF_OTHERS


def pytest_runtest_setup() -> None:
    """Forget the processes of earlier tests."""
    STARTED[:] = [process for process in STARTED if process.running]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show with a failure what a person needs: what the processes said, and the node as the cluster has it."""
    report = yield
    if report.failed:
        report.sections.append(("the machine", _how_busy()))
        for process in (one for one in STARTED if one.name not in build.CONTROL_PLANE):
            report.sections.append((f"the end of {process.log}", process.log_tail()))
        found = getattr(item, "funcargs", {})
        plane = found.get("plane") or found.get("control_plane")
        views = {value.name: value for value in found.values() if isinstance(value, NodeView)}
        if plane and "node_name" in found:
            views.setdefault(found["node_name"], NodeView(plane, found["node_name"]))
        report.sections += [(f"node {name}", str(view)) for name, view in views.items()]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the outermost wrapper, so that the line comes after pytest's own
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say at the end what was measured, how much was not tested for lack of a control plane, and why."""
    yield
    reports = [report for found in terminalreporter.stats.values() for report in found]
    told = [one for report in reports for one in getattr(report, "user_properties", ())]
    figures = dict(value for name, value in told if name == _FIGURE)
    if figures:
        terminalreporter.write_line(", ".join(f"{name}: {value}" for name, value in figures.items()))
    reasons = [_why(report) for report in terminalreporter.getreports("skipped")]
    untested = [reason for reason in reasons if reason.startswith(_NO_CONTROL_PLANE)]
    if untested:
        terminalreporter.write_line(f"{len(untested)} tests skipped: {untested[0]}", yellow=True)


def _how_busy() -> str:
    """How much this machine has to do, and how long what runs on it waits for processor, memory and disk."""
    pressure = [f"{path.name}: {path.read_text().splitlines()[0]}" for path in Path("/proc/pressure").glob("*")]
    return "\n".join(["load: " + Path("/proc/loadavg").read_text().strip(), *pressure])


def _why(report: pytest.TestReport) -> str:
    """The reason of a skip, without the place it came from."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
