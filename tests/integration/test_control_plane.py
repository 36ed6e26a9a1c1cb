"""The control plane that other tests stand on is real, and as strict as a kubeadm cluster."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.command import CommandFailed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually


def as_node(control_plane: ControlPlane, name: str, *words: str) -> str:
    return control_plane.kubectl("--kubeconfig", str(control_plane.node_kubeconfig(name)), *words)


def ready_condition(node: dict[str, Any]) -> dict[str, Any]:
    conditions = node.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "Ready"), {})


def ready_node(control_plane: ControlPlane, node_name: str) -> dict[str, Any]:
    """The Node if it is Ready, else nothing."""
    node = control_plane.get("node", node_name)
    return node if ready_condition(node).get("status") == "True" else {}


def machine_settings() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in ("kernel/panic", "vm/overcommit_memory")]


def test_the_api_server_is_ready(control_plane: ControlPlane) -> None:
    assert control_plane.kubectl("get", "--raw", "/readyz") == "ok"


def test_it_calls_itself_by_the_pinned_version(control_plane: ControlPlane) -> None:
    version = json.loads(control_plane.kubectl("version", "--output=json"))
    assert version["serverVersion"]["gitVersion"] == version["clientVersion"]["gitVersion"] != ""


def test_a_node_may_read_itself(control_plane: ControlPlane, node_name: str) -> None:
    with pytest.raises(CommandFailed, match="NotFound"):
        as_node(control_plane, node_name, "get", "node", node_name)


def test_a_node_may_not_read_another(control_plane: ControlPlane, node_name: str) -> None:
    with pytest.raises(CommandFailed, match="Forbidden"):
        as_node(control_plane, node_name, "get", "node", f"not-{node_name}")


def test_a_joining_node_may_ask_for_a_certificate(control_plane: ControlPlane) -> None:
    bootstrap = ("--kubeconfig", str(control_plane.bootstrap_kubeconfig))
    answer = control_plane.kubectl(*bootstrap, "auth", "can-i", "create", "certificatesigningrequests")
    assert answer.strip() == "yes"


def test_the_bootstrap_token_is_there_and_signs_cluster_info(control_plane: ControlPlane) -> None:
    assert control_plane.get("secret", "bootstrap-token-abcdef", "kube-system")
    assert eventually(
        lambda: "jws-kubeconfig-abcdef" in control_plane.get("configmap", "cluster-info", "kube-public")["data"]
    )


def test_the_audit_log_names_who_asked_for_what(control_plane: ControlPlane, node_name: str) -> None:
    with pytest.raises(CommandFailed):
        as_node(control_plane, node_name, "get", "node", node_name)
    lines = [json.loads(line) for line in control_plane.audit_log.read_text().splitlines()]
    assert f"system:node:{node_name}" in {line["user"].get("username") for line in lines}


def test_a_real_kubelet_registers_and_becomes_ready(
    control_plane: ControlPlane, node_name: str, start_kubelet: Callable[..., RealKubelet]
) -> None:
    start_kubelet(node_name)
    assert eventually(lambda: ready_node(control_plane, node_name), within=15)


def test_a_real_kubelet_resumes_its_node_after_a_crash(
    control_plane: ControlPlane, node_name: str, start_kubelet: Callable[..., RealKubelet]
) -> None:
    kubelet = start_kubelet(node_name)
    before = eventually(lambda: ready_node(control_plane, node_name))
    kubelet.process.kill()
    time.sleep(1)  # heartbeats tell whole seconds
    kubelet.start()
    # Ready alone would prove nothing: the condition from before the crash is still there.
    beat = ready_condition(before)["lastHeartbeatTime"]
    eventually(lambda: ready_condition(ready_node(control_plane, node_name))["lastHeartbeatTime"] != beat)
    assert control_plane.get("node", node_name)["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_real_kubelet_leaves_the_machine_as_it_was(
    control_plane: ControlPlane, node_name: str, start_kubelet: Callable[..., RealKubelet]
) -> None:
    before = machine_settings()
    kubelet = start_kubelet(node_name)
    eventually(lambda: ready_node(control_plane, node_name))
    assert machine_settings() == before
    assert str(kubelet.directory) not in Path("/proc/self/mountinfo").read_text()


def test_a_stopped_component_comes_back_where_it_was(control_plane: ControlPlane) -> None:
    control_plane.stop_component("kube-scheduler")
    control_plane.start_component("kube-scheduler")  # raises if it is not healthy on its port
