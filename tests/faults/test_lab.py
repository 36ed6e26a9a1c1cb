"""The commands of the labs in docs/ do what their pages say, on the embedded cluster and on a real one."""

import asyncio
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from agent.cli.demo import make_tls
from agent.minicluster.controller_manager import NodeMonitorOptions
from tests.cluster.agent_process import apart
from tests.cluster.api import NODES
from tests.cluster.embedded import EmbeddedCluster
from tests.docs.page import ROOT, Page
from tests.docs.reader import Reader, make_tools

HEALTH, DEATH = "docs/lab-node-health.md", "docs/non-graceful-shutdown.md"
_NODES = ("lab", "doomed", "spare")  # of the pages


def do_the_lab(name, kubeconfig, folder, kubectl):
    folder.mkdir()
    server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    tools = make_tools(folder, kubectl, apart(folder))
    environment = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(folder / ".cache"),
        "API_PORT": server.rpartition(":")[2],
    }
    with Reader(folder, environment) as learner:
        for block in Page(name).commands():
            learner.do(block)
        assert not [path.name for path in folder.iterdir() if not path.name.startswith(".")]


@pytest.fixture(scope="session")
def plane(fragile_plane):
    return fragile_plane


@pytest.fixture(scope="module")
def labs(plane, tmp_path_factory):
    """All labs at the same time: they mostly wait."""
    folder = tmp_path_factory.mktemp("lab")
    real = folder / "real.kubeconfig"
    shutil.copyfile(plane.admin_kubeconfig, real)
    tls, authority = asyncio.run(make_tls("127.0.0.1"))
    impatient = EmbeddedCluster(
        ssl_context=tls, node_monitor=NodeMonitorOptions(grace_period_seconds=20)
    )  # as the real one here
    with ThreadPoolExecutor(3) as learners, impatient as cluster:
        embedded = folder / "embedded.kubeconfig"
        cluster.write_kubeconfig(embedded, certificate_authority=authority)
        done = {
            name: learners.submit(do_the_lab, page, kubeconfig, folder / name, plane.kubectl_path)
            for name, page, kubeconfig in (
                ("embedded", HEALTH, embedded),
                ("real", HEALTH, real),
                ("death", DEATH, real),
            )
        }
        for future in done.values():
            future.exception()  # wait for all before the clusters go
    for name in _NODES:  # nobody else is to find silent nodes, wherever a lab has ended
        plane.api.delete(f"{NODES}/{name}")
    return done


@pytest.mark.slow
@pytest.mark.parametrize("cluster", ["embedded", "real"])
def test_every_step_of_the_lab_does_what_the_page_says(labs, cluster):
    labs[cluster].result()


@pytest.mark.slow
def test_every_step_of_the_lab_about_a_machine_that_dies_does_what_the_page_says(labs):
    labs["death"].result()


@pytest.mark.parametrize("name", [HEALTH, DEATH])
def test_the_page_has_steps_and_promises(name):
    steps = Page(name).commands()
    assert len(steps) >= 10
    assert sum(len(step.promises) for step in steps) >= 10
