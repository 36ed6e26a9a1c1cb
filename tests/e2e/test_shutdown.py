"""The end of the process where there is no logind, as in a container."""

import json

import pytest

from tests.cluster.waiting import eventually

GRACEFUL = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 10s
shutdownGracePeriodCriticalPods: 4s
"""


@pytest.fixture
def agent(cluster, control_plane, start_agent, tmp_path):
    """A node with a grace period, on a machine without a system bus."""
    config = tmp_path / "kubelet.yaml"
    config.write_text(GRACEFUL)
    own = ("--kubeconfig", str(control_plane.node_kubeconfig(cluster.name)), "--hostname-override", cluster.name)
    nowhere = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={tmp_path / 'no-bus'}"}
    process = start_agent(*own, "--healthz-port=0", f"--config={config}", env=nowhere)
    cluster.wait_until_ready()
    return process


def test_sigterm_tells_the_cluster_that_the_node_is_shutting_down(cluster, agent):
    eventually(lambda: "No logind here" in agent.log_text())
    assert agent.stop() == 0
    ready = next(condition for condition in cluster.node()["status"]["conditions"] if condition["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "KubeletNotReady", "node is shutting down")
    told = [event["message"] for event in cluster.events() if event["reason"] == "Shutdown"]
    assert told == ["Shutdown manager detected shutdown event"]


def slow_pod(name, node_name, **spec):
    """A pod that takes two seconds to end."""
    metadata = {"name": name, "annotations": {"fake-kubelet.dev/stop-after": "2s"}}
    spec = {"nodeName": node_name, "containers": [{"name": "main", "image": "pause:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.fixture
def pods(cluster, agent, control_plane):
    """A common pod and a critical one that run on the node, and how to look at them."""
    names = [f"{word}-{cluster.name}" for word in ("common", "critical")]
    priorities = ({}, {"priorityClassName": "system-node-critical"})
    items = [slow_pod(name, cluster.name, **spec) for name, spec in zip(names, priorities, strict=True)]
    control_plane.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def statuses():
        return [control_plane.get("pod", name, "default")["status"] for name in names]

    eventually(lambda: [status["phase"] for status in statuses()] == ["Running"] * 2)
    yield statuses
    control_plane.kubectl("delete", "pod", *names, "--force", "--ignore-not-found")


def test_pods_end_in_kubelets_order_and_say_why(agent, pods):
    eventually(lambda: "No logind here" in agent.log_text())
    assert agent.stop(within=40) == 0
    common, critical = pods()
    for status in (common, critical):
        assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
        disruption = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
        assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
        assert disruption["message"] == "Pod was terminated in response to imminent node shutdown."
    ends = [status["containerStatuses"][0]["state"]["terminated"]["finishedAt"] for status in (common, critical)]
    assert ends[0] < ends[1]
