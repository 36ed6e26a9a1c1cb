"""The commands of the labs in docs/ do what their pages say, on the embedded cluster and on a real one."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from agent.cli.demo import make_tls
from agent.minicluster.controller_manager import NodeMonitorOptions
from tests.cluster.agent_process import apart
from tests.cluster.api import NODES
from tests.cluster.command import completed
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.waiting import eventually

ROOT = Path(__file__).parents[2]
HEALTH, DEATH = ROOT / "docs" / "lab-node-health.md", ROOT / "docs" / "non-graceful-shutdown.md"
_BLOCK = re.compile(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)
_NODES = ("lab", "doomed", "spare")  # of the pages


class Step(NamedTuple):
    """What a learner types, and what the page says comes out."""

    commands: str
    promises: list[str]


def steps(page):
    return [Step(commands, promised.splitlines()) for commands, promised in _BLOCK.findall(page.read_text("utf-8"))]


def keeps(output, promise):
    """Whether some line of the output has the words of the promise, in their order; … stands for anything."""
    words = ".*".join(re.escape(part.strip()) for part in promise.split("…"))
    return any(re.search(words, line) for line in output.splitlines())


def take(step, folder, environment):
    """Type the commands, and again until everything promised has come: a learner would do so too."""
    # To a file: a pipe would not end before those who are left in the background do.
    typed = ["bash", "-c", f"exec > typed.out 2>&1\n{step.commands}"]

    def is_kept():
        completed(typed, cwd=folder, env=environment)
        seen = (folder / "typed.out").read_text()
        missing = [promise for promise in step.promises if not keeps(seen, promise)]
        assert not missing, f"after\n{step.commands}\nthere is no {missing} in\n{seen}"
        return True

    eventually(is_kept, every=1.5)  # a kubectl is no small thing


def do_the_lab(page, kubeconfig, folder, kubectl):
    folder.mkdir()
    server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    tools = folder / "bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(kubectl)
    (tools / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tools / "fake-kubelet").write_text(f'#!/bin/sh\nexec {sys.executable} -m agent {shlex.join(apart(folder))} "$@"\n')
    for tool in ("python", "fake-kubelet"):
        (tools / tool).chmod(0o755)
    environment = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(folder / "cache"),
        "API_PORT": server.rpartition(":")[2],
    }
    try:
        for step in steps(page):
            take(step, folder, environment)
        left = {path.name for path in folder.iterdir()} - {"bin", "cache", "typed.out"}
        assert left == set()
    finally:
        for pid_file in folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(pid_file.read_text()), signal.SIGKILL)


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


@pytest.mark.parametrize("page", [HEALTH, DEATH], ids=["health", "death"])
def test_the_page_has_steps_and_promises(page):
    assert len(steps(page)) >= 10
    assert sum(len(step.promises) for step in steps(page)) >= 10
