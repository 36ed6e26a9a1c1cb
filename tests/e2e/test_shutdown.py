"""The end of the process where there is no logind, as in a container."""

import pytest

from tests.cluster.waiting import eventually

GRACEFUL = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 10s
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
