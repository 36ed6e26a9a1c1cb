import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import yaml

from agent.cli.demo import make_tls
from tests.cluster.api import NODES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.ports import free_ports
from tests.docs.page import CHECKOUT, EMBEDDED, ROOT
from tests.docs.reader import Reader, make_tools

_NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__")


@pytest.fixture
def start_reader(
    request: pytest.FixtureRequest, binaries: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Reader]]:
    """Makes readers for an environment of tests/docs/page.py."""
    with ExitStack() as life:

        def start(environment: str) -> Reader:
            folder = tmp_path_factory.mktemp("reader")
            if environment == CHECKOUT:
                shutil.copytree(ROOT, folder, ignore=_NOT_COPIED, dirs_exist_ok=True)
                tools = make_tools(folder, binaries / "kubectl", [])
                for tool in ("python", "fake-kubelet"):
                    (tools / tool).unlink()
                temporary = {"/tmp/": f"{folder}/"}  # noqa: S108
                return life.enter_context(Reader(folder, _environment(tools, folder / "kubeconfig"), temporary))
            kubeconfig = folder / "admin.conf"
            if environment == EMBEDDED:
                endpoint, pin = _embedded(life, kubeconfig), ""
            else:
                plane: ControlPlane = request.getfixturevalue("control_plane")
                life.callback(_remove_nodes, plane, set(_nodes(plane)))
                shutil.copyfile(plane.admin_kubeconfig, kubeconfig)
                shutil.copyfile(plane.bootstrap_kubeconfig, folder / "bootstrap-kubelet.conf")
                endpoint, pin = plane.endpoint, plane.pin
            address, (port, healthz) = _own_address(), free_ports(2)
            replacements = {
                "192.0.2.1:6443": endpoint,
                "sha256:1234…": pin,
                "/etc/kubernetes/": f"{folder}/",
                "/var/lib/kubelet/": f"{folder}/",
                "127.0.0.1:10250": f"{address}:{port}",
                "127.0.0.1:10248": f"127.0.0.1:{healthz}",
            }
            apart = [f"--address={address}", f"--port={port}", f"--healthz-port={healthz}", "--read-only-port=0"]
            tools = make_tools(folder, binaries / "kubectl", [*apart, f"--cert-dir={folder / '.pki'}"])
            (folder / "config").symlink_to(ROOT / "config")
            return life.enter_context(Reader(folder, _environment(tools, kubeconfig), replacements))

        yield start


def _environment(tools: Path, kubeconfig: Path) -> dict[str, str]:
    return {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(tools.parent / ".cache"),
        "KUBERC": "off",
    }


def _embedded(life: ExitStack, kubeconfig: Path) -> str:
    """Start an embedded cluster; returns its host and port."""
    tls, authority = asyncio.run(make_tls("127.0.0.1"))
    cluster = life.enter_context(EmbeddedCluster(ssl_context=tls))
    cluster.write_kubeconfig(kubeconfig, certificate_authority=authority)
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]).removeprefix("https://")


def _own_address() -> str:
    """The address at which the API server calls the node; a loopback address is none that a node may have."""
    interfaces = psutil.net_if_addrs().items()
    addresses = [one for name, found in interfaces if name != "lo" for one in found if one.family.name == "AF_INET"]
    return addresses[0].address if addresses else "127.0.0.1"


def _nodes(plane: ControlPlane) -> list[str]:
    return [node["metadata"]["name"] for node in plane.api.items(NODES)]


def _remove_nodes(plane: ControlPlane, others: set[str]) -> None:
    for name in set(_nodes(plane)) - others:
        plane.api.delete(f"{NODES}/{name}")
