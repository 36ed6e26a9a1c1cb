"""The node is away for so long that the cluster gives it up, evicts its pods, and then it comes back."""

import json

import pytest

from tests.cluster.waiting import eventually
from tests.faults.member import BRISK

# Five minutes by default; the taint, and who deletes the pods because of it, are the same.
IMPATIENT = [
    {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}
    for word in ("unreachable", "not-ready")
]


@pytest.fixture
def pods(plane, node_name):
    """A Deployment of three whose pods fit on this node alone, and how to look at them."""
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node_name},
        "tolerations": IMPATIENT,
        "containers": [{"name": "main", "image": "pause:1"}],
    }
    template = {"metadata": {"labels": {"app": node_name}}, "spec": spec}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": node_name},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": node_name}}, "template": template},
    }
    plane.kubectl("create", "-f", "-", input=json.dumps(deployment))
    yield lambda: json.loads(plane.kubectl("get", "pods", f"--selector=app={node_name}", "--output=json"))["items"]
    plane.kubectl("delete", "deployment", node_name)


@pytest.fixture
def spare(plane, node_name, start_agent):
    """Another node that is well: where all are silent, the cluster blames itself and evicts nobody."""
    name = f"{node_name}-spare"
    kubeconfig = plane.node_kubeconfig(name)
    start_agent(f"--kubeconfig={kubeconfig}", f"--hostname-override={name}", "--enable-server=false", *BRISK)
    plane.kubectl("wait", "--for=create", f"node/{name}", "--timeout=30s")
    plane.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=30s")
    yield
    plane.kubectl("delete", "node", name)


def is_leaving(pod):
    return "deletionTimestamp" in pod["metadata"]


def ready(member):
    return next(one["status"] for one in member.node()["status"]["conditions"] if one["type"] == "Ready")


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spare")
def test_whoever_was_given_up_and_comes_back_leaves_nothing_hanging(join, pods):
    member = join()
    eventually(lambda: [pod["status"]["phase"] for pod in pods()] == ["Running"] * 3, within=60)
    before = {pod["metadata"]["uid"] for pod in pods()}
    member.process.kill()
    eventually(lambda: ready(member) == "Unknown", within=90, every=0.5)
    # Only the node could confirm that they ended, and it is away.
    eventually(lambda: {pod["metadata"]["uid"] for pod in pods() if is_leaving(pod)} == before, within=90, every=0.5)
    member = join()

    def all_is_well():
        found = [pod for pod in pods() if pod["status"]["phase"] == "Running" and not is_leaving(pod)]
        return len(found) == len(pods()) == 3 and not before & {pod["metadata"]["uid"] for pod in found}

    eventually(all_is_well, within=120, every=0.5)
    assert ready(member) == "True"
    eventually(lambda: not member.node()["spec"].get("taints"), within=60)
