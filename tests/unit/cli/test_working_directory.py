"""Whoever owns the working directory of a command, or of the daemon, has no code run in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters.child_process import python_module
from tests.cluster.agent_process import apart
from tests.cluster.hostile import HostileDirectory
from tests.cluster.pairs import client_pair
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.settings import CHECK

pytestmark = pytest.mark.slow  # a process for each command
SCRIPT = str(Path(sys.executable).with_name("fake-kubelet"))


@pytest.fixture
def hostile(tmp_path):
    return HostileDirectory(tmp_path)


def written(path, user):
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(document))
    return path


def member(folder):
    """A kubeconfig with which `join` finds that it has joined."""
    certificate, key = client_pair("system:node:n1").write(folder, "client")
    return written(folder / "kubelet.conf", {"client-certificate": str(certificate), "client-key": str(key)})


def test_the_traps_work(hostile):
    subprocess.run([sys.executable, "-c", "import json"], cwd=hostile.folder, capture_output=True, check=False)
    assert hostile.sprung  # Python 3.13 loads others before json


def test_every_python_process_of_ours_is_told_to_keep_off_the_working_directory():
    assert python_module("agent", "-v=2") == [sys.executable, "-P", "-m", "agent", "-v=2"]
    sources = (Path(__file__).parents[3] / "agent").rglob("*.py")
    own = [path.name for path in sources if "sys.executable," in path.read_text()]
    assert set(own) == {"child_process.py", "endpoints.py"}  # the latter tells it as the command line


COMMANDS = [
    "--version",
    "--help",
    "config show",
    "config check",
    "completion bash",
    "healthcheck --healthz-port=1",
    "join --help",
    "join 127.0.0.1:1 --token=abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification "
    "--discovery-timeout=1s",
    "install --dry-run",
    "uninstall --dry-run",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_no_code_of_the_working_directory(hostile, tmp_path, command):
    environment = os.environ | {"HOME": str(tmp_path)}
    argv = [SCRIPT, *command.split()]
    subprocess.run(argv, cwd=hostile.folder, env=environment, capture_output=True, check=False)
    assert hostile.sprung == []


def test_nor_does_the_module_beyond_what_python_itself_loads_for_dash_m(tmp_path):
    for name in ("json", "ssl", "asyncio", "yaml", "aiohttp", "psutil", "socket", "logging"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run from the working directory')\n")
    subprocess.run([sys.executable, "-m", "agent", *CHECK], cwd=tmp_path, capture_output=True, check=True)


def started(hostile, tmp_path, *arguments):
    own = ["--hostname-override=n1", "--healthz-port=0", *apart(tmp_path)]
    process = Process("fake-kubelet", [SCRIPT, *arguments, *own], log=tmp_path / "log", cwd=hostile.folder)
    process.start()
    return process


def test_join_and_the_daemon_that_it_becomes_run_no_code_of_the_working_directory(hostile, tmp_path):
    (tmp_path / "ca.crt").write_text(client_pair("ca").pem)
    files = [f"--kubeconfig={member(tmp_path)}", f"--client-ca-file={tmp_path / 'ca.crt'}"]
    words = ["--token=abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification"]
    process = started(hostile, tmp_path, "join", "127.0.0.1:1", *words, *files)
    try:
        # By then the daemon has taken the place of `join`, and a child has made a key.
        eventually(lambda: "Loaded serving certificate" in process.log_text(), within=60)
    finally:
        process.stop()
    assert "This machine has joined already" in process.log_text()
    assert hostile.sprung == []


def test_the_child_that_waits_for_a_bootstrap_runs_no_code_of_the_working_directory(hostile, tmp_path):
    bootstrap = written(tmp_path / "bootstrap.conf", {"token": "abcdef.0123456789abcdef"})
    files = [f"--bootstrap-kubeconfig={bootstrap}", f"--kubeconfig={tmp_path / 'kubelet.conf'}"]
    process = started(hostile, tmp_path, *files)
    try:
        eventually((tmp_path / "pki" / "kubelet-client.key.tmp").exists, within=60)
    finally:
        process.stop()
    assert hostile.sprung == []
