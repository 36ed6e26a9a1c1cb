"""Nodes in a real kind cluster, joined as docs/container.md says; what is there already must not suffer."""

import os
import sys
import time
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from tests.cluster.waiting import eventually

CONFIG = Path(__file__).parents[2] / "config" / "kind"
PUBLISHED = "docker.io/library/fake-kubelet:latest"  # what the manifests call it
REPLICAS = ["fake-kubelet-0", "fake-kubelet-1"]
WATCHED_SECONDS = float(os.environ.get("KIND_WATCHED_SECONDS", "20"))

pytestmark = pytest.mark.timeout(600 + WATCHED_SECONDS)  # the first test waits for the cluster, too


def conditions(node):
    return {condition["type"]: condition["status"] for condition in node["status"].get("conditions", [])}


def address(node, kind):
    return next((entry["address"] for entry in node["status"]["addresses"] if entry["type"] == kind), None)


def wait_until_ready(kind, name):
    def ready():
        node = kind.get("node", name)
        return node if conditions(node).get("Ready") == "True" else None

    return eventually(ready, within=240, every=0.5)


@contextmanager
def removed_afterwards(kind, name):
    """The container of a node, until the end of the block; nothing of it stays in the cluster."""
    try:
        yield
    finally:
        kind.run("podman", "rm", "--force", "--time=0", "--volumes", name, check=False)
        kind.kubectl("delete", "node", name, "--ignore-not-found")


def on_pod_network(pod):
    return not pod["spec"].get("hostNetwork")


def daemon_set(name, image, **spec):
    """One as kind's own are: on every node, whatever its taints."""
    labels, container = {"set": name}, {"name": "pause", "image": image, "imagePullPolicy": "IfNotPresent"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"tolerations": [{"operator": "Exists"}], "containers": [container], **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def is_rolled_out(found):
    status = found["status"]
    wanted = status["desiredNumberScheduled"]
    return status["observedGeneration"] == found["metadata"]["generation"] and status["numberReady"] == wanted > 0


@pytest.fixture(scope="module")
def beside(kind, engine, image):
    """The name of a node that is a container beside those of kind."""
    engine.podman("tag", image, PUBLISHED)
    name = f"{kind.name}-fake"
    with removed_afterwards(kind, name):
        join(kind, name)
        yield name
    engine.podman("untag", image, PUBLISHED)


def join(kind, name):
    """Have the script make a node, on an image that `beside` has given its name."""
    kind.run("env", f"IMAGE={PUBLISHED}", str(CONFIG / "join.sh"), kind.name, name)
    wait_until_ready(kind, name)


@pytest.fixture(scope="module")
def inside(kind, beside):
    """The names of nodes that are pods of the cluster."""
    kind.load(PUBLISHED)
    kind.serve_the_api_to_pods()
    kind.kubectl("apply", "-k", str(CONFIG))
    kind.kubectl("--namespace=fake-kubelet", "scale", "statefulset", "fake-kubelet", f"--replicas={len(REPLICAS)}")
    for name in REPLICAS:
        wait_until_ready(kind, name)
    return REPLICAS


@pytest.fixture(scope="module")
def composed(kind, beside):
    """The names of nodes that compose has started."""
    made = ("exec", kind.control_plane, "kubeadm", "token", "create", "--print-join-command")
    _, _, server, _, token, _, pin = kind.run("podman", *made).split()
    given = (f"SERVER={server}", f"TOKEN={token}", f"HASH={pin}", f"IMAGE={PUBLISHED}", f"CLUSTER={kind.name}")
    compose = (
        sys.executable,
        "-m",
        "podman_compose",
        f"--project-name={kind.name}-composed",
        f"--file={CONFIG / 'compose.yaml'}",
    )
    call = ("env", *given, "ENGINE=podman", *compose)
    kind.run(*call, "up", "--detach", "--scale=node=2")
    ids = kind.run("podman", "ps", "--quiet", f"--filter=name={kind.name}-composed").split()
    for name in ids:
        wait_until_ready(kind, name)
    yield ids
    kind.run(*call, "down", "--volumes")


def test_a_container_joined_by_the_script_is_a_node_of_the_network_of_kind(kind, beside):
    node, real = kind.get("node", beside), kind.get("node", kind.control_plane)
    assert node["spec"]["providerID"] == f"kind://podman/{kind.name}/{beside}"
    assert real["spec"]["providerID"] == f"kind://podman/{kind.name}/{kind.control_plane}"
    told = kind.run("podman", "inspect", beside, "--format", "{{.NetworkSettings.Networks.kind.IPAddress}}")
    assert address(node, "InternalIP") == told
    assert node["status"]["capacity"]["cpu"] == real["status"]["capacity"]["cpu"]


def test_each_replica_of_the_stateful_set_is_a_node_that_tells_no_internal_ip(kind, inside):
    for name in inside:
        node, pod = kind.get("node", name), kind.get("pod", name, "--namespace=fake-kubelet")
        assert address(node, "InternalIP") is None  # kindnet would end for want of a route to it
        assert address(node, "ExternalIP") == pod["status"]["podIP"]


def test_compose_makes_as_many_nodes_as_are_asked_for(kind, composed):
    assert len(composed) == 2
    for name in composed:
        assert kind.get("node", name)["spec"]["providerID"] == f"kind://podman/{kind.name}/{name}"


def test_nothing_lands_on_a_fake_node_that_does_not_ask_for_it(kind, beside, inside, composed):
    for name in (beside, *inside, *composed):
        taints = [(taint["key"], taint["effect"]) for taint in kind.get("node", name)["spec"]["taints"]]
        assert taints == [("fake-kubelet.dev/node", "NoSchedule")]


def test_names_addresses_and_pod_ranges_are_unique(kind, beside, inside, composed):
    nodes = kind.get("nodes")["items"]
    names = {node["metadata"]["name"] for node in nodes}
    assert names == {kind.control_plane, beside, *inside, *composed}
    ips = [address(node, "InternalIP") or address(node, "ExternalIP") for node in nodes]
    ranges = [node["spec"]["podCIDR"] for node in nodes]
    assert len(ips) == len(set(ips)), ips
    assert len(ranges) == len(set(ranges)), ranges


def test_daemon_sets_run_on_every_node_each_pod_with_an_address_of_its_nodes_range(kind, beside, inside, composed):
    image = kind.pause_image
    kind.apply(daemon_set("on-the-pod-network", image), daemon_set("on-the-hosts", image, hostNetwork=True))
    for name in ("on-the-pod-network", "on-the-hosts"):
        eventually(lambda name=name: is_rolled_out(kind.get("daemonset", name)), within=240, every=0.5)
    pods = kind.get("pods", "--selector=set=on-the-pod-network")["items"]
    ranges = {node["metadata"]["name"]: node["spec"]["podCIDR"] for node in kind.get("nodes")["items"]}
    assert {pod["spec"]["nodeName"] for pod in pods} == set(ranges)
    ips = {pod["status"]["podIP"] for pod in kind.get("pods", "--all-namespaces")["items"] if on_pod_network(pod)}
    assert len(ips) == len(pods) + len(inside)
    for pod in pods:
        if pod["spec"]["nodeName"] != kind.control_plane:  # whose pods have theirs from a range that is in the image
            assert ip_address(pod["status"]["podIP"]) in ip_network(ranges[pod["spec"]["nodeName"]])


def test_the_api_server_reaches_the_kubelets_api_of_both(kind, beside, inside):
    for name in (beside, inside[0]):
        assert kind.kubectl("get", "--raw", f"/api/v1/nodes/{name}/proxy/healthz") == "ok"


def ready_since(node):
    """What changes if the node is not Ready for a moment."""
    ready = next(condition for condition in node["status"]["conditions"] if condition["type"] == "Ready")
    return ready["status"], ready["lastTransitionTime"]


def test_all_stay_ready_and_nothing_restarts(kind, beside, inside, composed):
    names = (kind.control_plane, beside, *inside, *composed)
    before = {name: ready_since(kind.get("node", name)) for name in names}
    time.sleep(WATCHED_SECONDS)  # as long as one wants to know it for: nothing happens
    assert {name: ready_since(kind.get("node", name)) for name in names} == before
    assert {status for status, _ in before.values()} == {"True"}
    containers = [
        status for pod in kind.get("pods", "--all-namespaces")["items"] for status in pod["status"]["containerStatuses"]
    ]
    assert {status["restartCount"] for status in containers} == {0}
    assert kind.run("podman", "inspect", beside, "--format", "{{.RestartCount}}") == "0"


def test_the_line_of_the_page_makes_a_node(kind, beside):
    page = (CONFIG.parents[1] / "docs/container.md").read_text()
    line = page[page.index("docker run ") :].partition("\n```")[0]
    for old, new in (("docker", "podman"), ("kind-control-plane", kind.control_plane), ("fake-1", f"{kind.name}-1")):
        line = line.replace(old, new)
    with removed_afterwards(kind, f"{kind.name}-1"):
        kind.run("sh", "-c", line)
        wait_until_ready(kind, f"{kind.name}-1")


def short_of_patience(name, node, image):
    """A pod that stays on a silent node for a moment only."""
    patience = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "pause", "image": image}],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [{"key": "fake-kubelet.dev/node", "operator": "Exists"}, {**patience, "operator": "Exists"}],
        },
    }


def test_a_container_that_is_gone_is_a_node_of_unknown_state_whose_pods_are_evicted(kind, beside):
    name = f"{kind.name}-gone"

    def given_up():
        node = kind.get("node", name)
        taints = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
        unreachable = {("node.kubernetes.io/unreachable", effect) for effect in ("NoExecute", "NoSchedule")}
        return conditions(node)["Ready"] == "Unknown" and unreachable <= taints

    with removed_afterwards(kind, name):
        join(kind, name)
        kind.apply(short_of_patience("impatient", name, kind.pause_image))
        eventually(lambda: conditions(kind.get("pod", "impatient"))["Ready"] == "True", within=240, every=0.5)
        kind.run("podman", "rm", "--force", "--time=0", "--volumes", name)
        eventually(given_up, within=240, every=1)
        eventually(lambda: kind.get("pod", "impatient")["metadata"].get("deletionTimestamp"), within=240, every=1)
        kind.kubectl("delete", "pod", "impatient", "--force", "--grace-period=0")
