"""kubectl against our node, through the API server."""

import json
import secrets
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES, PODS
from tests.cluster.command import completed
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

NAME = f"door-kubectl-{secrets.token_hex(3)}"
POD = f"{NAME}-pod"
NOTHING_RUNS = "no containers run on this node: it is a fake-kubelet"


@pytest.fixture(scope="module")
def kubectl(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """kubectl, and a node with one pod that the API server can reach."""
    folder = tmp_path_factory.mktemp("kubectl")
    # The API server calls the node at its address, not on loopback; both are this machine.
    found = psutil.net_if_addrs().items()
    ours = next(a.address for name, all_ in found if name != "lo" for a in all_ if a.family.name == "AF_INET")
    # By default, it trusts the CA in its kubeconfig, which has signed the client certificate of the API server.
    own = (f"--kubeconfig={control_plane.node_kubeconfig(NAME)}", f"--hostname-override={NAME}", "--healthz-port=0")
    agent = AgentProcess(*own, f"--address={ours}", f"--node-ip={ours}", log=folder / "log")
    agent.start()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        argv = [str(control_plane.kubectl_path), f"--kubeconfig={control_plane.admin_kubeconfig}", *words]
        env = {"KUBECACHEDIR": str(folder / "cache"), "KUBERC": "off"}
        return completed(argv, env=env)

    try:
        eventually(lambda: control_plane.api.ask("GET", f"{NODES}/{NAME}/proxy/healthz").body == b"ok")
        eventually(lambda: control_plane.get("serviceaccount", "default", "default"))
        control_plane.api.create(PODS, _pod())
        eventually(lambda: control_plane.get("pod", POD, "default")["status"]["phase"] == "Running")
        yield run
    finally:
        control_plane.api.delete(f"{PODS}/{POD}?gracePeriodSeconds=0")
        agent.stop()
        control_plane.api.delete(f"{NODES}/{NAME}")


def _pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": "default"},
        "spec": {
            "nodeName": NAME,
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "nginx"}],
        },
    }


Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    "path", ["healthz", "healthz/syncloop", "pods", "stats/summary", "metrics/resource", "configz"]
)
def test_the_proxy_of_the_api_server_reaches_the_node(kubectl: Kubectl, path: str) -> None:
    done = kubectl("get", "--raw", f"/api/v1/nodes/{NAME}/proxy/{path}")
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


def test_the_summary_lists_the_pod(kubectl: Kubectl) -> None:
    (told,) = json.loads(kubectl("get", "--raw", f"/api/v1/nodes/{NAME}/proxy/stats/summary").stdout)["pods"]
    assert (told["podRef"]["name"], [container["name"] for container in told["containers"]]) == (POD, ["c"])
    assert told["containers"][0]["cpu"]["usageCoreNanoSeconds"] == 0  # nothing runs


@pytest.mark.parametrize("more", [(), ("--follow",), ("--timestamps", "--tail=1")], ids=" ".join)
def test_logs_tell_the_containers_story(kubectl: Kubectl, more: tuple[str, ...]) -> None:
    done = kubectl("logs", POD, *more)
    assert (done.returncode, "nginx:latest runs in name only" in done.stdout) == (0, True), done.stderr


def test_the_log_of_a_plain_command_is_followed_to_its_end(control_plane: ControlPlane, kubectl: Kubectl) -> None:
    name = f"{POD}-plain"
    script = 'echo "hi from $ME"; sleep 3; echo bye; exit 1'
    spec = _pod()["spec"] | {"restartPolicy": "Never"}
    spec["containers"] = [
        {
            "name": "c",
            "image": "busybox",
            "command": ["sh", "-c", script],
            "env": [{"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }
    ]
    control_plane.api.create(PODS, _pod() | {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    try:
        eventually(lambda: control_plane.get("pod", name, "default")["status"]["phase"] in {"Running", "Failed"})
        assert kubectl("logs", "--follow", name).stdout == f"hi from {name}\nbye\n"
        eventually(lambda: control_plane.get("pod", name, "default")["status"]["phase"] == "Failed")
        assert kubectl("logs", "--tail=1", name).stdout == "bye\n"
    finally:
        control_plane.api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")


@pytest.mark.parametrize(
    "words",
    [("exec", POD, "--", "ls"), ("exec", "-i", POD, "--", "sh"), ("attach", POD), ("port-forward", POD, "0:80")],
    ids=["exec", "exec -i", "attach", "port-forward"],  # without the name, which each process of the run has another of
)
def test_what_needs_a_container_ends_with_a_clear_sentence(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    done = kubectl(*words)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith(NOTHING_RUNS)


def test_the_settings_that_are_shown_are_those_in_effect(kubectl: Kubectl) -> None:
    shown = json.loads(kubectl("get", "--raw", f"/api/v1/nodes/{NAME}/proxy/configz").stdout)["kubeletconfig"]
    assert shown["authorization"]["mode"] == "Webhook"
    assert (shown["kind"], shown["evictionHard"]["memory.available"]) == ("KubeletConfiguration", "100Mi")
