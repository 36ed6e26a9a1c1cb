"""Stock kubectl: the words people type, against both servers."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.cli.demo import make_tls
from tests.cluster import build
from tests.cluster.command import completed
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.contract.conditions import condition

Kubectl = Callable[..., str]


def stock_kubectl() -> str:
    """The kubectl of the control plane under test, or the one on the PATH."""
    for directory in (os.environ.get("KUBEBUILDER_ASSETS", ""), str(build.KUBERNETES.directory)):
        if directory and os.access(Path(directory) / "kubectl", os.X_OK):
            return str(Path(directory) / "kubectl")
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl on this machine")
    return found


def runner(binary: str, kubeconfig: Path, home: Path) -> Kubectl:
    """Runs kubectl with nothing of the user's own, and answers with what it printed."""

    def printed(*words: str, stdin: str = "") -> str:
        done = completed([binary, *words], stdin=stdin, env=environment(kubeconfig, home))
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    return printed


def environment(kubeconfig: Path, home: Path) -> dict[str, str]:
    return {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "KUBERC": "off"}


@pytest.fixture(scope="session")
def tls() -> tuple[ssl.SSLContext, str]:
    """A certificate for all embedded clusters, and who signed it: a process has to make its key."""
    return asyncio.run(make_tls("127.0.0.1"))


@pytest.fixture
def mini_kubectl(tmp_path: Path, tls: tuple[ssl.SSLContext, str]) -> Iterator[tuple[str, Path]]:
    context, authority = tls
    with EmbeddedCluster(ssl_context=context) as cluster:
        kubeconfig = tmp_path / "kubeconfig"
        cluster.write_kubeconfig(kubeconfig, certificate_authority=authority)
        yield stock_kubectl(), kubeconfig


@pytest.fixture
def real_kubectl(control_plane: Any) -> tuple[str, Path]:
    return str(control_plane.kubectl_path), control_plane.admin_kubeconfig


@pytest.fixture
def access(server: str, request: pytest.FixtureRequest) -> Any:
    """kubectl's path and a kubeconfig for the server under test."""
    return request.getfixturevalue(f"{server}_kubectl")


@pytest.fixture
def kubectl(access: tuple[str, Path], tmp_path: Path) -> Kubectl:
    return runner(*access, tmp_path)


def manifest(name: str) -> str:
    return f"""
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{kubernetes.io/os: linux, kubernetes.io/arch: amd64}}
"""


@pytest.fixture
def node(kubectl: Kubectl, name: str) -> Iterator[str]:
    """A node that kubectl made."""
    kubectl("create", "-f", "-", stdin=manifest(name))
    yield name
    kubectl("delete", "node", name, "--ignore-not-found")


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_get_prints_a_row(kubectl: Kubectl, node: str) -> None:
    heads, row = rows(kubectl("get", "node", node))
    assert heads == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row[:3] == [node, "Unknown", "<none>"]


def test_get_wide_prints_more(kubectl: Kubectl, node: str) -> None:
    heads, row = rows(kubectl("get", "no", node, "-o", "wide"))
    assert heads[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert row[0] == node


def test_get_yaml_prints_the_object(kubectl: Kubectl, node: str) -> None:
    printed = kubectl("get", "node", node, "-o", "yaml")
    assert printed.startswith("apiVersion: v1\nkind: Node\nmetadata:\n")
    assert f"  name: {node}\n" in printed


def test_get_jsonpath_reads_a_field(kubectl: Kubectl, node: str) -> None:
    assert kubectl("get", "node", node, "-o", "jsonpath={.metadata.name}") == node


def test_label_annotate_and_taint(kubectl: Kubectl, node: str) -> None:
    assert kubectl("label", "node", node, "example.com/a=b") == f"node/{node} labeled\n"
    assert kubectl("annotate", "node", node, "example.com/c=d") == f"node/{node} annotated\n"
    assert kubectl("taint", "node", node, "example.com/e=f:NoExecute") == f"node/{node} tainted\n"
    printed = kubectl("describe", "node", node)
    assert "example.com/a=b" in printed
    assert "example.com/c: d" in printed
    assert "example.com/e=f:NoExecute" in printed
    assert rows(kubectl("get", "nodes", "-l", "example.com/a=b"))[1][0] == node
    assert kubectl("taint", "node", node, "example.com/e-") == f"node/{node} untainted\n"


def test_cordon_and_uncordon(kubectl: Kubectl, node: str) -> None:
    assert kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert rows(kubectl("get", "node", node))[1][1] == "Unknown,SchedulingDisabled"
    assert kubectl("uncordon", node) == f"node/{node} uncordoned\n"


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl, name: str) -> None:
    assert kubectl("apply", "-f", "-", stdin=manifest(name)) == f"node/{name} created\n"
    assert kubectl("apply", "-f", "-", stdin=manifest(name)) == f"node/{name} unchanged\n"
    changed = manifest(name).replace("amd64}", "amd64, example.com/new: label}")
    assert kubectl("apply", "-f", "-", stdin=changed) == f"node/{name} configured\n"
    assert kubectl("get", "node", name, "-o", r"jsonpath={.metadata.labels.example\.com/new}") == "label"
    assert kubectl("delete", "node", name).startswith(f'node "{name}" deleted')


def test_describe_tells_it_all(kubectl: Kubectl, node: str) -> None:
    patch = {"status": {"conditions": [condition("Ready", "True", reason="KubeletReady")]}}
    kubectl("patch", "node", node, "--subresource=status", "-p", str(patch).replace("'", '"'))
    lease = f"""
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {{name: {node}, namespace: kube-node-lease}}
spec: {{holderIdentity: {node}, renewTime: "2026-01-02T03:04:05.678901Z"}}
"""
    kubectl("create", "-f", "-", stdin=lease)
    printed = kubectl("describe", "node", node)
    assert f"Name:               {node}" in printed
    assert f"HolderIdentity:  {node}" in printed
    assert "KubeletReady" in printed
    assert "Non-terminated Pods:          (0 in total)" in printed
    leases = rows(kubectl("get", "lease", "-A"))
    assert ["kube-node-lease", node, node] in [row[:3] for row in leases]


def test_events_are_printed(kubectl: Kubectl, node: str) -> None:
    event = f"""
apiVersion: v1
kind: Event
metadata: {{name: {node}.1, namespace: default}}
involvedObject: {{apiVersion: v1, kind: Node, name: {node}}}
reason: Rebooted
type: Warning
message: it did
"""
    kubectl("create", "-f", "-", stdin=event)
    told = [row[1:] for row in rows(kubectl("get", "events", "--field-selector", f"involvedObject.name={node}"))]
    assert ["Warning", "Rebooted", f"node/{node}", "it", "did"] in told
    assert "Rebooted" in kubectl("events", "--for", f"node/{node}", "-n", "default")


def test_get_watch_follows(access: tuple[str, Path], kubectl: Kubectl, node: str, tmp_path: Path) -> None:
    binary, kubeconfig = access
    argv, log = [binary, "get", "node", node, "--watch"], tmp_path / "watch.log"
    watching = Process("kubectl", argv, log=log, env=environment(kubeconfig, tmp_path))
    watching.start()
    try:
        eventually(lambda: rows(watching.log_text()), lambda printed: len(printed) > 1)  # controllers may add more
        kubectl("cordon", node)
        heads, *of_node = eventually(
            lambda: rows(watching.log_text()), lambda printed: "SchedulingDisabled" in printed[-1][1]
        )
        assert heads[0] == "NAME"
        assert {row[0] for row in of_node} == {node}
    finally:
        watching.stop()


def test_wait_waits(kubectl: Kubectl, node: str) -> None:
    patch = {"status": {"conditions": [condition("Ready", "True")]}}
    kubectl("patch", "node", node, "--subresource=status", "-p", str(patch).replace("'", '"'))
    printed = kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=20s")
    assert printed == f"node/{node} condition met\n"


def test_api_resources_and_version(kubectl: Kubectl) -> None:
    printed = rows(kubectl("api-resources", "--no-headers"))
    assert ["nodes", "no", "v1", "false", "Node"] in printed
    assert ["leases", "coordination.k8s.io/v1", "true", "Lease"] in printed
    assert "Server Version: v1.36." in kubectl("version")


def test_an_administrator_may(kubectl: Kubectl) -> None:
    assert "yes" in kubectl("auth", "can-i", "delete", "nodes")
