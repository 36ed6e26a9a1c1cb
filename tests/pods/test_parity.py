"""The same pods on a real kubelet and on fake-kubelet: the API sees no difference, from their start to their end."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NAMESPACES, NODES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.difference import differences
from tests.cluster.kubelet_races import POD_EVENTS, PODS_AT_ONCE, UNLIMITED_PULLS
from tests.cluster.node_view import NodeView
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.pods.home import create_namespace, delete_namespace
from tests.pods.observation import LastSeen, comparable, events_by_pod, manifest
from tests.pods.specs import CASES, PodCase

pytestmark = pytest.mark.slow

_LISTS = yaml.safe_load((Path(__file__).parent / "allowed.yaml").read_text())
ALIVE, ENDED = _LISTS["alive"], [*_LISTS["alive"], *_LISTS["ended"]]
TOLD = [race._asdict() for race in POD_EVENTS]
_CONFIG = {"maxPods": 200} | UNLIMITED_PULLS


class Side:
    """One of the two nodes, and its pods in a namespace of the same name."""

    def __init__(self, plane: ControlPlane, node_name: str, folder: Path) -> None:
        self._plane, self.name = plane, node_name
        self._path = f"{NAMESPACES}/{node_name}/pods"
        create_namespace(plane, node_name)
        self.seen = LastSeen(plane, node_name, folder / f"{node_name}.json")
        self.alive: dict[str, Any] = {}
        self.told: dict[str, Any] = {}
        self._ended: dict[str, Any] = {}

    def start(self) -> None:
        """Create the pods of all cases, a few at a time, those that are late when the others are there."""
        for is_late in (False, True):
            pods = [manifest(case, pod_name(case), self.name, self.name) for case in CASES if case.is_late is is_late]
            for first in range(0, len(pods), PODS_AT_ONCE):
                for pod in pods[first : first + PODS_AT_ONCE]:
                    self._plane.api.create(self._path, pod)
                eventually(self._are_taken_on)

    def _are_taken_on(self) -> bool:
        return all(pod["status"].get("startTime") for pod in self.pods().values())

    def debug(self) -> None:
        """Add a container to the pods that want one, as `kubectl debug` does."""
        for case in CASES:
            if case.debugger:
                name = pod_name(case)
                pod = eventually(lambda name=name: self._running(name))  # type: ignore[misc]
                pod["spec"]["ephemeralContainers"] = [case.debugger]
                del pod["metadata"]["resourceVersion"]  # the kubelet may be writing to the pod, too
                self._plane.api.request("PUT", f"{self._path}/{name}/ephemeralcontainers", pod)

    def end(self) -> None:
        """Delete the pods, a few at a time."""
        while there := self.pods():
            few = list(there)[:PODS_AT_ONCE]
            for name in few:
                self._plane.api.delete(f"{self._path}/{name}")
            eventually(lambda few=few: self.pods().keys().isdisjoint(few), every=0.3)  # type: ignore[misc]
        wanted = {pod_name(case) for case in CASES}
        self._ended = eventually(lambda: (ended := self.seen.deleted()).keys() == wanted and ended)

    def _running(self, name: str) -> dict[str, Any] | None:
        pod = self._plane.get("pod", name, self.name)
        return pod if pod["status"]["phase"] == "Running" else None

    def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: comparable(pod) for pod in self._plane.api.items(self._path)}

    def last(self, case: PodCase) -> Any:
        """The last that was seen of a pod that is gone."""
        return comparable(self._ended[pod_name(case)])


def pod_name(case: PodCase) -> str:
    return f"case-{CASES.index(case)}"


@pytest.fixture(scope="module")
def sides(
    root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """A kubelet and fake-kubelet, and what became of the pods of all cases on them."""
    folder = tmp_path_factory.mktemp("p")
    both = Side(control_plane, "pods-kubelet", folder), Side(control_plane, "pods-ours", folder)
    kubelet = RealKubelet(control_plane, both[0].name, tmp_path_factory.mktemp("k"), config=_CONFIG)
    kubeconfig = control_plane.node_kubeconfig(both[1].name)
    agent = AgentProcess(
        *(f"--config={_config_file(folder)}", f"--kubeconfig={kubeconfig}", f"--hostname-override={both[1].name}"),
        log=folder / "agent.log",
    )
    try:
        kubelet.start()
        agent.start()
        for side in both:
            NodeView(control_plane, side.name).wait_until_ready()
        with ThreadPoolExecutor(len(both)) as pool:
            list(pool.map(Side.start, both))
            list(pool.map(Side.debug, both))
        _wait_until_equal(*both)
        with ThreadPoolExecutor(len(both)) as pool:
            list(pool.map(Side.end, both))
        _wait_until_told(control_plane, both)
        yield both
    finally:
        agent.stop()
        kubelet.stop()
        for side in both:
            side.seen.stop()
            control_plane.api.delete(f"{NODES}/{side.name}")
            delete_namespace(control_plane, side.name)


def _config_file(folder: Path) -> Path:
    """The kubelet's settings, as far as they decide about pods."""
    header = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(header | {"enableServer": False, "healthzPort": 0} | _CONFIG))
    return path


def _wait_until_equal(kubelet: Side, ours: Side) -> None:
    """Until all pods are where they are on the other side, or so long that they never will be."""

    def equal() -> bool:
        kubelet.alive, ours.alive = kubelet.pods(), ours.pods()
        return not differences(kubelet.alive, ours.alive, [_below_name(entry) for entry in ALIVE])

    with suppress(AssertionError):  # the tests tell which, and how
        eventually(equal, every=0.5)


def _wait_until_told(plane: ControlPlane, both: tuple[Side, Side]) -> None:
    """Until the last event is there, or will not come any more."""

    def told() -> bool:
        for side in both:
            side.told = events_by_pod(plane, side.name)
        found = [{name: {"events": events} for name, events in side.told.items()} for side in both]
        return not differences(found[0], found[1], [_below_name(entry) for entry in TOLD])

    with suppress(AssertionError):  # the tests tell which
        eventually(told, every=0.5)


def _below_name(entry: dict[str, str]) -> dict[str, str]:
    return {"path": rf"case-\d+\.{entry['path']}"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_pod_has_the_status_that_a_kubelet_gives_it(case: PodCase, sides: tuple[Side, Side]) -> None:
    kubelet, ours = (side.alive[pod_name(case)] for side in sides)
    found = differences(kubelet, ours, ALIVE)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_deleted_pod_ends_as_with_a_kubelet(case: PodCase, sides: tuple[Side, Side]) -> None:
    kubelet, ours = (side.last(case) for side in sides)
    found = differences(kubelet, ours, ENDED)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_pod_is_told_of_as_by_a_kubelet(case: PodCase, sides: tuple[Side, Side]) -> None:
    kubelet, ours = ({"events": side.told.get(pod_name(case), [])} for side in sides)
    found = differences(kubelet, ours, TOLD)
    assert not found, "\n".join(found)


def test_all_in_all_nothing_differs_but_what_may(sides: tuple[Side, Side], figure: Callable[[str, str], None]) -> None:
    found = [
        line
        for case in CASES
        for line in (
            *differences(*(side.alive[pod_name(case)] for side in sides), ALIVE),
            *differences(*(side.last(case) for side in sides), ENDED),
        )
    ]
    figure("pod status parity", f"{len(CASES)} specs, {len(found)} differences outside {len(ENDED)} allowed")
    assert not found


def test_the_list_of_allowed_differences_stays_short() -> None:
    assert len(CASES) >= 25
    assert len(ENDED) <= 6
    assert all(entry["reason"] for entry in ENDED)
