"""The demo as a user runs it, without a terminal."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cluster.hostile import HostileDirectory
from tests.cluster.waiting import eventually

COMMAND = [sys.executable, "-m", "agent", "demo"]


@pytest.fixture
def demo(tmp_path):
    """A demo that runs until it is told to stop, and what it printed."""
    output = tmp_path / "output"
    with output.open("w") as stream:
        # A demo that is killed cannot remove its folder: pytest does that.
        own = {**os.environ, "TMPDIR": str(tmp_path)}
        process = subprocess.Popen(COMMAND, stdout=stream, stderr=subprocess.STDOUT, env=own)
    yield process, output
    if process.poll() is None:
        process.kill()
    process.wait()


def test_it_shows_a_ready_node_and_ends_by_itself_with_exit_code_0():
    shown = subprocess.run([*COMMAND, "--for", "12s"], capture_output=True, text=True, check=False, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"Ready +True +kubelet is posting ready status", shown.stdout)
    assert re.search(r"MemoryPressure +False +memory.available [\d.]+Gi \(pressure below 100Mi\)", shown.stdout)
    assert re.search(r"lease +renewed \d+\.\ds ago", shown.stdout)
    assert "event Normal NodeReady" in shown.stdout


def test_it_runs_no_code_of_the_directory_that_it_is_started_in(tmp_path):
    hostile = HostileDirectory(tmp_path)
    argv = [str(Path(sys.executable).with_name("fake-kubelet")), "demo", "--for", "12s"]
    shown = subprocess.run(argv, cwd=hostile.folder, capture_output=True, text=True, check=False, timeout=60)
    assert hostile.sprung == []
    assert shown.returncode == 0, shown.stderr


def test_pressure_can_be_seen():
    arguments = ["--for", "12s", "--eviction-hard", "memory.available<99.9%"]
    shown = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "event Normal NodeHasInsufficientMemory" in shown.stdout
    assert "MemoryPressure=True" in shown.stdout or re.search(r"MemoryPressure +True", shown.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "soon"], "for --for: time: invalid duration"),
        (["--eviction-hard", "disk<1"], "unsupported eviction signal disk"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(arguments, said):
    failed = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_signal_ends_it_cleanly_and_leaves_nothing_behind(demo):
    process, output = demo
    eventually(lambda: "event Normal NodeReady" in output.read_text(), within=30)
    kubeconfig = Path(re.search(r"--kubeconfig (\S+)", output.read_text())[1])
    daemon = eventually(lambda: children(process.pid))
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 0
    assert not kubeconfig.parent.exists()
    assert not Path(f"/proc/{daemon[0]}").exists()


def test_the_daemon_does_not_outlive_a_demo_that_is_killed(demo):
    process, output = demo
    eventually(lambda: "event Normal NodeReady" in output.read_text(), within=30)
    (daemon,) = children(process.pid)
    process.kill()
    process.wait()
    eventually(lambda: not Path(f"/proc/{daemon}").exists())


def test_stock_kubectl_works_against_it(demo, binaries):
    _, output = demo
    eventually(lambda: "event Normal NodeReady" in output.read_text(), within=30)
    kubeconfig = re.search(r"--kubeconfig (\S+)", output.read_text())[1]

    def kubectl(*arguments):
        command = [binaries / "kubectl", "--kubeconfig", kubeconfig, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout

    assert re.search(r"\S+ +Ready +<none> +\S+ +v1\.36\.3\+fake-kubelet", kubectl("get", "nodes"))
    assert "KubeletReady" in kubectl("describe", "node")
    assert "kube-node-lease" in kubectl("get", "lease", "-A")
    assert "Starting kubelet." in kubectl("get", "events")


def test_other_users_of_the_machine_are_told_nothing(demo):
    """Not by the node, which serves the log files of whoever started it, and not by the cluster."""
    process, output = demo
    eventually(lambda: "event Normal NodeReady" in output.read_text(), within=30)
    config = json.loads(Path(re.search(r"--kubeconfig (\S+)", output.read_text())[1]).read_text())
    cluster, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
    (daemon,) = children(process.pid)
    words = Path(f"/proc/{daemon}/cmdline").read_text().split("\0")
    node = f"https://127.0.0.1:{words[words.index('--port') + 1]}"
    of_node = [f"{node}/{path}" for path in ("logs/", "pods", "metrics", "configz", "stats/summary", "healthz")]
    of_cluster = [f"{cluster}/{path}" for path in ("api/v1/nodes", "version", "apis/certificates.k8s.io/v1")]
    eventually(lambda: answered(of_node[0]), within=60)  # the node makes its certificate while it becomes ready
    for url in (*of_node, *of_cluster):
        assert (url, answered(url)) == (url, 401)
        assert (url, answered(url, "another")) == (url, 401)
    assert {answered(url, token) for url in (of_node[0], of_node[1], *of_cluster)} == {200}


def test_its_files_are_private(demo):
    _, output = demo
    eventually(lambda: "event Normal NodeReady" in output.read_text(), within=30)
    kubeconfig = Path(re.search(r"--kubeconfig (\S+)", output.read_text())[1])
    assert stat.S_IMODE(kubeconfig.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def answered(url, token=None):
    """The status of an answer to a caller on this machine."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.get(url, headers=headers, verify=False, timeout=30).status_code  # noqa: S501


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
