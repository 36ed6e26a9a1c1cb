"""The demo as a user runs it, without a terminal."""

import json
import os
import re
import signal
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cluster.api import NOBODY, bearer
from tests.cluster.command import completed, run
from tests.cluster.hostile import HostileDirectory
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

COMMAND = [sys.executable, "-m", "agent", "demo"]


class Demo(Process):
    """A demo that runs until it is told to stop, and what it printed; the folder is for its own."""

    def __init__(self, folder, *flags):
        # A demo that is killed cannot remove its folder: pytest does that.
        super().__init__("demo", [*COMMAND, *flags], log=folder / "output", env={"TMPDIR": str(folder)})

    def wait_for(self, words):
        """What it printed, once it has said this."""
        return eventually(lambda: self.log_text() if words in self.log_text() else "")

    @property
    def kubeconfig(self):
        return Path(re.search(r"--kubeconfig (\S+)", self.log_text())[1])

    def end(self):
        """Its exit code after Ctrl-C."""
        os.kill(self.pid, signal.SIGINT)
        return self.wait(120)


@pytest.fixture
def start_demo(tmp_path):
    """Starts demos that show a ready node."""
    with ExitStack() as running:

        def start(*flags):
            demo = Demo(tmp_path, *flags)
            running.callback(demo.kill)
            demo.start()
            demo.wait_for("event Normal NodeReady")
            return demo

        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One demo for those who only look at it."""
    demo = Demo(tmp_path_factory.mktemp("demo"))
    demo.start()
    try:
        demo.wait_for("event Normal NodeReady")
        yield demo
    finally:
        demo.kill()


def test_it_shows_a_ready_node(shared):
    shown = shared.wait_for("  Ready ")  # the whole view, once it is ready
    assert re.search(r"Ready +True +kubelet is posting ready status", shown)
    assert re.search(r"MemoryPressure +False +memory.available [\d.]+Gi \(pressure below 100Mi\)", shown)
    assert re.search(r"lease +renewed \d+\.\ds ago", shown)


@pytest.mark.slow
def test_it_runs_no_code_of_the_directory_that_it_is_started_in_and_ends_by_itself_with_exit_code_0(tmp_path):
    hostile, fakelet = HostileDirectory(tmp_path), str(Path(sys.executable).with_name("fake-kubelet"))
    for seconds in (8, 30, 90):  # again for a machine on which the node is not ready in the time
        shown = completed([fakelet, "demo", "--for", f"{seconds}s"], cwd=hostile.folder)
        if "did not become ready in the time given" not in shown.stderr:
            break
    assert hostile.sprung == []
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"Ready +True +kubelet is posting ready status", shown.stdout)


def test_pressure_can_be_seen(start_demo):
    demo = start_demo("--eviction-hard", "memory.available<99.9%")
    demo.wait_for("event Normal NodeHasInsufficientMemory")
    eventually(lambda: re.search(r"MemoryPressure(=| +)True", demo.log_text()))
    assert demo.end() == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "soon"], "for --for: time: invalid duration"),
        (["--eviction-hard", "disk<1"], "unsupported eviction signal disk"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(arguments, said):
    failed = completed([*COMMAND, *arguments])
    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_signal_ends_it_cleanly_and_leaves_nothing_behind(start_demo):
    demo = start_demo()
    kubeconfig = demo.kubeconfig
    (daemon,) = children(demo.pid)
    assert demo.end() == 0
    assert not kubeconfig.parent.exists()
    assert not Path(f"/proc/{daemon}").exists()


def test_the_daemon_does_not_outlive_a_demo_that_is_killed(start_demo):
    demo = start_demo()
    (daemon,) = children(demo.pid)
    demo.kill()
    eventually(lambda: not Path(f"/proc/{daemon}").exists())


def test_stock_kubectl_works_against_it(shared, binaries):
    def kubectl(*arguments):
        return run([str(binaries / "kubectl"), "--kubeconfig", str(shared.kubeconfig), *arguments])

    assert re.search(r"\S+ +Ready +<none> +\S+ +v1\.36\.3\+fake-kubelet", kubectl("get", "nodes"))
    assert "KubeletReady" in kubectl("describe", "node")
    assert "kube-node-lease" in kubectl("get", "lease", "-A")
    assert "Starting kubelet." in kubectl("get", "events")


def test_other_users_of_the_machine_are_told_nothing(shared):
    """Not by the node, which serves the log files of whoever started it, and not by the cluster."""
    config = json.loads(shared.kubeconfig.read_text())
    server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
    (daemon,) = children(shared.pid)
    words = Path(f"/proc/{daemon}/cmdline").read_text().split("\0")
    node, cluster = int(words[words.index("--port") + 1]), urlsplit(server).port
    of_node = [(node, f"/{path}") for path in ("logs/", "pods", "metrics", "configz", "stats/summary", "healthz")]
    of_cluster = [(cluster, f"/{path}") for path in ("api/v1/nodes", "version", "apis/certificates.k8s.io/v1")]
    known, another = bearer("known", token), bearer("another", "another")
    eventually(lambda: answered(NOBODY, *of_node[0]))  # the node makes its certificate while it becomes ready
    for place in (*of_node, *of_cluster):
        assert (place, answered(NOBODY, *place)) == (place, 401)
        assert (place, answered(another, *place)) == (place, 401)
    assert {answered(known, *place) for place in (of_node[0], of_node[1], *of_cluster)} == {200}


def test_its_files_are_private(shared):
    assert stat.S_IMODE(shared.kubeconfig.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.kubeconfig.stat().st_mode) == 0o600


def answered(identity, port, path):
    """The status of an answer to a caller on this machine."""
    return identity.ask(port, "GET", path).status


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
