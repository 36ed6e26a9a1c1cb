"""A disk that fills up: the same pods go from a real kubelet and from fake-kubelet, and the same is said of them."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NAMESPACES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.pressure import filled_disk, small_disk
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.pods.home import create_namespace, delete_namespace
from tests.pods.observation import events_by_pod

NAMES = ("evicting-kubelet", "evicting-ours")
CONFIG = {"evictionHard": {"nodefs.available": "20%"}, "evictionPressureTransitionPeriod": "1s"}
_AVAILABLE = re.compile(r"available: \w+")


@pytest.fixture
def disk(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("d"), mebibytes=64) as mount:
        yield mount


def pods(node_name: str) -> list[dict[str, Any]]:
    """One that may go, and one without which the node would not be one."""
    specs: dict[str, dict[str, Any]] = {"plain": {}, "critical": {"priorityClassName": "system-node-critical"}}
    common = {"nodeName": node_name, "automountServiceAccountToken": False}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": node_name},
            "spec": common | {"containers": [{"name": "main", "image": "pause:1"}]} | spec,
        }
        for name, spec in specs.items()
    ]


@pytest.fixture
def nodes(control_plane: ControlPlane, disk: Path, tmp_path: Path) -> Iterator[tuple[NodeView, NodeView]]:
    """A kubelet's node and ours on one disk, with the pods running."""
    views = tuple(NodeView(control_plane, name) for name in NAMES)
    with ExitStack() as stack:
        kubelet = RealKubelet(control_plane, NAMES[0], disk, config=CONFIG)
        for view in views:
            create_namespace(control_plane, view.name)
            stack.callback(view.delete_node)
            stack.callback(delete_namespace, control_plane, view.name)
        stack.enter_context(kubelet)
        own = (f"--kubeconfig={control_plane.node_kubeconfig(NAMES[1])}", f"--hostname-override={NAMES[1]}")
        agent = AgentProcess(
            *kubelet.arguments, *own, "--healthz-port=0", "--enable-server=false", log=tmp_path / "agent.log"
        )
        stack.callback(agent.stop)
        agent.start()
        for view in views:
            view.wait_until_ready()
            for pod in pods(view.name):
                control_plane.api.create(f"{NAMESPACES}/{view.name}/pods", pod)
        for view in views:
            for pod in ("plain", "critical"):
                eventually(lambda view=view, pod=pod: status(view, pod)["phase"] == "Running")  # type: ignore[misc]
        yield views[0], views[1]


def status(view: NodeView, name: str) -> dict[str, Any]:
    found: dict[str, Any] = view.plane.get("pod", name, view.name)["status"]
    return found


@pytest.mark.slow
def test_pods_are_evicted_alike(nodes: tuple[NodeView, NodeView], disk: Path) -> None:
    with filled_disk(disk, leave_bytes=2**20):
        for view in nodes:
            # A real one whose containers exit with 0 has succeeded, in the eyes of a kubelet.
            eventually(lambda view=view: status(view, "plain")["phase"] in {"Failed", "Succeeded"})  # type: ignore[misc]
    ended = [status(view, "plain") for view in nodes]
    assert told(ended[0]) == told(ended[1])
    assert (ended[1]["phase"], ended[1]["reason"]) == ("Failed", "Evicted")
    with suppress(AssertionError):  # the next line tells how they differ
        eventually(lambda: said(nodes[0]) == said(nodes[1]))
    assert said(nodes[0]) == said(nodes[1])
    assert [status(view, "critical")["phase"] for view in nodes] == ["Running", "Running"]


def said(view: NodeView) -> list[dict[str, Any]]:
    """The events about the pod that goes, without the figures of the moment."""
    events = events_by_pod(view.plane, view.name)["plain"]
    return [event | {"message": _AVAILABLE.sub("", event["message"])} for event in events]


def told(status: dict[str, Any]) -> dict[str, Any]:
    """Why a pod was disrupted, without the figures of the moment."""
    found = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    return {**found, "lastTransitionTime": "", "message": _AVAILABLE.sub("", found["message"])}
