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

from tests.cluster.api import NOBODY, PLAIN, bearer
from tests.cluster.command import completed
from tests.cluster.hostile import HostileDirectory
from tests.cluster.process import Process
from tests.cluster.terminal import Terminal
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
        return Path(re.search(r"KUBECONFIG=(\S+)", self.log_text())[1])

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


@pytest.fixture(scope="module")
def kubectl(shared, binaries, tmp_path_factory):
    """Runs the kubectl of the version that the demo claims."""
    home = tmp_path_factory.mktemp("home")
    env = {"KUBECONFIG": str(shared.kubeconfig), "HOME": str(home), "KUBERC": "off"}

    def kubectl(*words):
        return completed([str(binaries / "kubectl"), *words], env=env)

    return kubectl


@pytest.fixture(scope="module")
def web(kubectl):
    """A pod that runs, made by the line that the demo prints."""
    running = re.compile(r"web +1/1 +Running +0 +\S+ +10\.244\.\S+ +\S+ ")
    made = kubectl("run", "web", "--image=nginx")
    assert made.stdout == "pod/web created\n", made.stderr
    eventually(lambda: running.search(kubectl("get", "pods", "-o", "wide").stdout))
    return "web"


def test_every_printed_line_works(shared, kubectl, web):
    printed = re.findall(r"^  kubectl (.*)$", shared.log_text(), re.MULTILINE)
    assert printed[0] == "run web --image=nginx"  # by the fixture
    said = {line: kubectl(*line.split()) for line in printed[1:]}
    assert {line: done.stderr for line, done in said.items() if done.returncode} == {}
    assert "runs in name only" in said["logs web"].stdout
    assert re.search(r"\S+ +\d+m +\d+% +\d+Mi +\d+% ", said["top node"].stdout)
    assert "KubeletReady" in said["describe node"].stdout


def test_stock_kubectl_works_against_it(kubectl):
    assert re.search(r"\S+ +Ready +<none> +\S+ +v1\.36\.3\+fake-kubelet", kubectl("get", "nodes").stdout)
    assert "kube-node-lease" in kubectl("get", "lease", "-A").stdout
    assert "Starting kubelet." in kubectl("get", "events").stdout


@pytest.mark.parametrize("words", ["exec web -- ls", "exec -i web -- sh", "attach web", "port-forward web 0:80"])
def test_what_needs_a_container_ends_with_a_clear_sentence(kubectl, web, words):
    done = kubectl(*words.split())
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("no containers run on this node: it is a fake-kubelet")


def test_a_log_can_be_followed(kubectl, web):
    assert "runs in name only" in kubectl("logs", "--follow", "--tail=1", "web").stdout


def test_a_deployment_needs_a_real_cluster_and_it_says_so(kubectl):
    done = kubectl("create", "deployment", "web", "--image=nginx")
    assert done.returncode == 1
    assert "the embedded cluster of fake-kubelet has no deployments.apps; that needs a real API server" in done.stderr


def test_a_node_can_be_drained_and_used_again(start_demo, binaries, tmp_path):
    demo = start_demo()
    env = {"KUBECONFIG": str(demo.kubeconfig), "HOME": str(tmp_path), "KUBERC": "off"}

    def kubectl(*words):
        done = completed([str(binaries / "kubectl"), *words], env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    kubectl("run", "first", "--image=i")
    kubectl("wait", "--for=condition=Ready", "pod/first", "--timeout=120s")
    (node,) = kubectl("get", "nodes", "-o", "name").split()
    assert "pod/first evicted" in kubectl("drain", node, "--force")
    kubectl("run", "second", "--image=i")
    eventually(lambda: "1 node(s) were unschedulable" in kubectl("describe", "pod", "second"))
    kubectl("uncordon", node)
    kubectl("wait", "--for=condition=Ready", "pod/second", "--timeout=120s")
    demo.wait_for("pods: 1 running, 0 pending, 1 in total")


def test_it_names_the_page_of_the_node(shared):
    port = int(re.search(r"page: http://127\.0\.0\.1:(\d+)/", shared.log_text())[1])
    page = eventually(lambda: PLAIN.ask(port, "GET", "/"))
    assert (page.status, page.headers["Content-Type"].partition(";")[0]) == (200, "text/html")


def test_it_is_drawn_anew_when_the_terminal_is_resized(tmp_path):
    with Terminal(COMMAND, env={"TMPDIR": str(tmp_path), "TERM": "xterm-256color"}) as terminal:
        terminal.resize(columns=100, lines=40)
        terminal.wait_for(border(100))
        terminal.wait_for("kubelet is posting ready status")
        terminal.resize(columns=70, lines=24)
        drawn = terminal.wait_for(rf"\x1b\[2J(?!.*\x1b\[2J).*{border(70)}.*Ctrl-C ends it")
        assert "Try, in another terminal" in drawn  # the lines to paste are there again
        assert border(100) not in drawn
        assert "0 running, 0 pending, 0 in total" in drawn


def border(columns):
    """The upper border of the view on a terminal of this width."""
    dashes = columns - len("╭ fake-kubelet demo ╮")
    return f"╭{'─' * (dashes // 2)} fake-kubelet demo {'─' * (dashes - dashes // 2)}╮"


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
