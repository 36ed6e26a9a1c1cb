"""A disk that fills up: the same pods go from a real kubelet and from fake-kubelet, and the same is said of them."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually
from tests.parity.pressure import filled_disk, small_disk
from tests.pods.observation import events_by_pod

NODES = ("evicting-kubelet", "evicting-ours")
CONFIG = {"evictionHard": {"nodefs.available": "20%"}, "evictionPressureTransitionPeriod": "1s"}
_AVAILABLE = re.compile(r"available: \w+")


@pytest.fixture
def disk(root: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("d"), mebibytes=64) as mount:
        yield mount


def pods(node_name: str) -> str:
    """One that may go, and one without which the node would not be one."""
    specs: dict[str, dict[str, Any]] = {"plain": {}, "critical": {"priorityClassName": "system-node-critical"}}
    common = {"nodeName": node_name, "automountServiceAccountToken": False}
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": node_name},
            "spec": common | {"containers": [{"name": "main", "image": "pause:1"}]} | spec,
        }
        for name, spec in specs.items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


@pytest.mark.timeout(240)
def test_pods_are_evicted_alike(control_plane: ControlPlane, disk: Path, tmp_path: Path) -> None:
    def phase(node_name: str, name: str) -> str:
        return str(control_plane.get("pod", name, node_name)["status"]["phase"])

    def said(node_name: str) -> list[dict[str, Any]]:
        events = events_by_pod(control_plane, node_name)["plain"]
        return [event | {"message": _AVAILABLE.sub("", event["message"])} for event in events]

    with ExitStack() as stack:
        kubelet = RealKubelet(control_plane, NODES[0], disk, config=CONFIG)
        for name in NODES:
            control_plane.kubectl("create", "namespace", name)
            stack.callback(control_plane.kubectl, "delete", "namespace", name, "--wait=false")
            stack.callback(control_plane.kubectl, "delete", "node", name, "--wait=false")
        stack.enter_context(kubelet)
        own = (f"--kubeconfig={control_plane.node_kubeconfig(NODES[1])}", f"--hostname-override={NODES[1]}")
        agent = AgentProcess(
            *kubelet.arguments, *own, "--healthz-port=0", "--enable-server=false", log=tmp_path / "agent.log"
        )
        stack.callback(agent.stop)
        agent.start()
        for name in NODES:
            control_plane.kubectl("wait", "--for=create", f"node/{name}", "--timeout=30s")
            control_plane.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=30s")
            eventually(lambda name=name: control_plane.get("serviceaccount", "default", name), within=20)
            control_plane.kubectl("create", "-f", "-", input=pods(name))
            for pod in ("plain", "critical"):
                eventually(lambda name=name, pod=pod: phase(name, pod) == "Running", within=30)
        with filled_disk(disk, leave_bytes=2**20):
            for name in NODES:
                # A real one whose containers exit with 0 has succeeded, in the eyes of a kubelet.
                eventually(lambda name=name: phase(name, "plain") in {"Failed", "Succeeded"}, within=90, every=0.5)
        ended = [control_plane.get("pod", "plain", name)["status"] for name in NODES]
        assert told(ended[0]) == told(ended[1])
        assert (ended[1]["phase"], ended[1]["reason"]) == ("Failed", "Evicted")
        with suppress(AssertionError):  # the next line tells how they differ
            eventually(lambda: said(NODES[0]) == said(NODES[1]), within=20, every=0.5)
        assert said(NODES[0]) == said(NODES[1])
        assert [phase(name, "critical") for name in NODES] == ["Running", "Running"]


def told(status: dict[str, Any]) -> dict[str, Any]:
    """Why a pod was disrupted, without the figures of the moment."""
    found = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    return {**found, "lastTransitionTime": "", "message": _AVAILABLE.sub("", found["message"])}
