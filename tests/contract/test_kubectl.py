"""Stock kubectl: the words people type, against both servers."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.demo.certificate import make_tls
from agent.minicluster import MiniCluster
from tests.cluster import build
from tests.contract.client import condition

pytestmark = pytest.mark.anyio

Kubectl = Callable[..., Awaitable[str]]


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
    env = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "KUBERC": "off", "PATH": os.environ["PATH"]}

    async def run(*words: str, stdin: str | None = None) -> str:
        process = await asyncio.create_subprocess_exec(
            binary,
            *words,
            env=env,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            printed, _ = await process.communicate(stdin.encode() if stdin is not None else None)
        assert process.returncode == 0, f"kubectl {' '.join(words)}: {printed.decode()}"
        return printed.decode()

    return run


@pytest.fixture(scope="session")
async def tls(anyio_backend: str) -> tuple[ssl.SSLContext, str]:
    """A certificate for all embedded clusters, and who signed it: a process has to make its key."""
    return await make_tls("127.0.0.1")


@pytest.fixture
async def mini_kubectl(tmp_path: Path, tls: tuple[ssl.SSLContext, str]) -> AsyncIterator[tuple[str, Path]]:
    context, authority = tls
    async with MiniCluster(ssl_context=context) as cluster:
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
async def node(kubectl: Kubectl, name: str) -> AsyncIterator[str]:
    """A node that kubectl made."""
    await kubectl("create", "-f", "-", stdin=manifest(name))
    yield name
    await kubectl("delete", "node", name, "--ignore-not-found")


def rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


async def test_get_prints_a_row(kubectl: Kubectl, node: str) -> None:
    heads, row = rows(await kubectl("get", "node", node))
    assert heads == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row[:3] == [node, "Unknown", "<none>"]


async def test_get_wide_prints_more(kubectl: Kubectl, node: str) -> None:
    heads, row = rows(await kubectl("get", "no", node, "-o", "wide"))
    assert heads[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert row[0] == node


async def test_get_yaml_prints_the_object(kubectl: Kubectl, node: str) -> None:
    printed = await kubectl("get", "node", node, "-o", "yaml")
    assert printed.startswith("apiVersion: v1\nkind: Node\nmetadata:\n")
    assert f"  name: {node}\n" in printed


async def test_get_jsonpath_reads_a_field(kubectl: Kubectl, node: str) -> None:
    assert await kubectl("get", "node", node, "-o", "jsonpath={.metadata.name}") == node


async def test_label_annotate_and_taint(kubectl: Kubectl, node: str) -> None:
    assert await kubectl("label", "node", node, "example.com/a=b") == f"node/{node} labeled\n"
    assert await kubectl("annotate", "node", node, "example.com/c=d") == f"node/{node} annotated\n"
    assert await kubectl("taint", "node", node, "example.com/e=f:NoExecute") == f"node/{node} tainted\n"
    printed = await kubectl("describe", "node", node)
    assert "example.com/a=b" in printed
    assert "example.com/c: d" in printed
    assert "example.com/e=f:NoExecute" in printed
    assert rows(await kubectl("get", "nodes", "-l", "example.com/a=b"))[1][0] == node
    assert await kubectl("taint", "node", node, "example.com/e-") == f"node/{node} untainted\n"


async def test_cordon_and_uncordon(kubectl: Kubectl, node: str) -> None:
    assert await kubectl("cordon", node) == f"node/{node} cordoned\n"
    assert rows(await kubectl("get", "node", node))[1][1] == "Unknown,SchedulingDisabled"
    assert await kubectl("uncordon", node) == f"node/{node} uncordoned\n"


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl, name: str) -> None:
    assert await kubectl("apply", "-f", "-", stdin=manifest(name)) == f"node/{name} created\n"
    assert await kubectl("apply", "-f", "-", stdin=manifest(name)) == f"node/{name} unchanged\n"
    changed = manifest(name).replace("amd64}", "amd64, example.com/new: label}")
    assert await kubectl("apply", "-f", "-", stdin=changed) == f"node/{name} configured\n"
    assert await kubectl("get", "node", name, "-o", r"jsonpath={.metadata.labels.example\.com/new}") == "label"
    assert (await kubectl("delete", "node", name)).startswith(f'node "{name}" deleted')


async def test_describe_tells_it_all(kubectl: Kubectl, node: str) -> None:
    patch = {"status": {"conditions": [condition("Ready", "True", reason="KubeletReady")]}}
    await kubectl("patch", "node", node, "--subresource=status", "-p", str(patch).replace("'", '"'))
    lease = f"""
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {{name: {node}, namespace: kube-node-lease}}
spec: {{holderIdentity: {node}, renewTime: "2026-01-02T03:04:05.678901Z"}}
"""
    await kubectl("create", "-f", "-", stdin=lease)
    printed = await kubectl("describe", "node", node)
    assert f"Name:               {node}" in printed
    assert f"HolderIdentity:  {node}" in printed
    assert "KubeletReady" in printed
    assert "Non-terminated Pods:          (0 in total)" in printed
    leases = rows(await kubectl("get", "lease", "-A"))
    assert ["kube-node-lease", node, node] in [row[:3] for row in leases]


async def test_events_are_printed(kubectl: Kubectl, node: str) -> None:
    event = f"""
apiVersion: v1
kind: Event
metadata: {{name: {node}.1, namespace: default}}
involvedObject: {{apiVersion: v1, kind: Node, name: {node}}}
reason: Rebooted
type: Warning
message: it did
"""
    await kubectl("create", "-f", "-", stdin=event)
    told = [row[1:] for row in rows(await kubectl("get", "events", "--field-selector", f"involvedObject.name={node}"))]
    assert ["Warning", "Rebooted", f"node/{node}", "it", "did"] in told
    assert "Rebooted" in await kubectl("events", "--for", f"node/{node}", "-n", "default")


@asynccontextmanager
async def watching(access: tuple[str, Path], home: Path, *words: str) -> AsyncIterator[asyncio.StreamReader]:
    """What a kubectl that does not end prints, line by line."""
    binary, kubeconfig = access
    env = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "KUBERC": "off"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(binary, *words, env=env, stdout=pipe)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.terminate()
        await process.communicate()


async def test_get_watch_follows(access: tuple[str, Path], kubectl: Kubectl, node: str, tmp_path: Path) -> None:
    async with asyncio.timeout(60), watching(access, tmp_path, "get", "node", node, "-w") as printed:
        assert (await printed.readline()).split()[0] == b"NAME"
        assert (await printed.readline()).split()[0] == node.encode()
        await kubectl("cordon", node)
        line = await printed.readline()
        while b"SchedulingDisabled" not in line:
            assert line.split()[0] == node.encode()
            line = await printed.readline()


async def test_wait_waits(kubectl: Kubectl, node: str) -> None:
    patch = {"status": {"conditions": [condition("Ready", "True")]}}
    await kubectl("patch", "node", node, "--subresource=status", "-p", str(patch).replace("'", '"'))
    printed = await kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=20s")
    assert printed == f"node/{node} condition met\n"


async def test_api_resources_and_version(kubectl: Kubectl) -> None:
    printed = rows(await kubectl("api-resources", "--no-headers"))
    assert ["nodes", "no", "v1", "false", "Node"] in printed
    assert ["leases", "coordination.k8s.io/v1", "true", "Lease"] in printed
    assert "Server Version: v1.36." in await kubectl("version")


async def test_an_administrator_may(kubectl: Kubectl) -> None:
    assert "yes" in await kubectl("auth", "can-i", "delete", "nodes")
