"""The control plane that other tests stand on is real, and as strict as a kubeadm cluster."""

import json
import secrets
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.cluster.audit import Request, requests_of
from tests.cluster.command import CommandFailed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually


def as_node(control_plane: ControlPlane, name: str, *words: str) -> str:
    return control_plane.kubectl("--kubeconfig", str(control_plane.node_kubeconfig(name)), *words)


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
    eventually(lambda: requests_of(node_name, control_plane.audit_log))


@pytest.fixture(scope="module")
def settings_before() -> list[str]:
    return machine_settings()


@pytest.fixture(scope="module")
def kubelet(
    root: None, settings_before: list[str], control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealKubelet]:
    """A kubelet that has registered and become Ready."""
    name = f"real-{secrets.token_hex(3)}"
    with RealKubelet(control_plane, name, tmp_path_factory.mktemp("kubelet")) as kubelet:
        NodeView(control_plane, name).wait_until_ready()
        yield kubelet
    NodeView(control_plane, name).delete_node()


def test_a_real_kubelet_resumes_its_node_after_a_crash(control_plane: ControlPlane, kubelet: RealKubelet) -> None:
    view = NodeView(control_plane, kubelet.node_name)
    before = view.wait_until_ready()

    def requests(verb: str, target: str, code: int) -> list[Request]:
        found = requests_of(kubelet.node_name, control_plane.audit_log)
        return [one for one in found if (one.verb, one.target, one.code) == (verb, target, code)]

    kubelet.process.kill()
    kubelet.start()
    # Ready alone would prove nothing: the condition from before the crash is still there.
    again = eventually(lambda: requests("create", "nodes", HTTPStatus.CONFLICT)[-1])
    eventually(lambda: requests("patch", "nodes/status", HTTPStatus.OK)[-1].received > again.received)
    assert view.wait_until_ready()["metadata"]["uid"] == before["metadata"]["uid"]


def test_a_real_kubelet_leaves_the_machine_as_it_was(kubelet: RealKubelet, settings_before: list[str]) -> None:
    assert machine_settings() == settings_before
    assert str(kubelet.directory) not in Path("/proc/self/mountinfo").read_text()


def test_a_stopped_component_comes_back_where_it_was(control_plane: ControlPlane) -> None:
    control_plane.stop_component("kube-scheduler")
    control_plane.start_component("kube-scheduler")  # raises if it is not healthy on its port
