"""The end of the process where there is no logind, as in a container."""

import secrets
from typing import Any, NamedTuple

import pytest

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import PODS
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually

GRACEFUL = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
shutdownGracePeriod: 10s
shutdownGracePeriodCriticalPods: 4s
"""


def slow_pod(name, node_name, **spec):
    """A pod that takes two seconds to end."""
    metadata = {"name": name, "annotations": {"fake-kubelet.dev/stop-after": "2s"}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node_name, "containers": [{"name": "main", "image": "pause:1"}], **spec},
    }


class Ended(NamedTuple):
    """A node whose process was told to end, and what the cluster has of it and its pods."""

    code: int | None
    view: NodeView
    common: dict[str, Any]
    critical: dict[str, Any]


@pytest.fixture(scope="module")
def ended(control_plane, tmp_path_factory):
    """SIGTERM for a node with a grace period, a common pod and a critical one, on a machine without a system bus."""
    folder, view = tmp_path_factory.mktemp("shutdown"), NodeView(control_plane, f"shutdown-{secrets.token_hex(3)}")
    (folder / "kubelet.yaml").write_text(GRACEFUL)
    own = (f"--kubeconfig={control_plane.node_kubeconfig(view.name)}", f"--hostname-override={view.name}")
    nowhere = {"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={folder / 'no-bus'}"}
    flags = (*own, "--healthz-port=0", f"--config={folder / 'kubelet.yaml'}")
    agent = AgentProcess(*flags, log=folder / "log", env=nowhere)
    paths = [f"{PODS}/{word}-{view.name}" for word in ("common", "critical")]
    priorities = ({}, {"priorityClassName": "system-node-critical"})

    def statuses():
        return [view.api.get(path)["status"] for path in paths]

    agent.start()
    try:
        view.wait_until_ready()
        eventually(lambda: control_plane.get("serviceaccount", "default"))
        for path, spec in zip(paths, priorities, strict=True):
            view.api.create(PODS, slow_pod(path.rpartition("/")[2], view.name, **spec))
        eventually(lambda: [status["phase"] for status in statuses()] == ["Running"] * 2)
        eventually(lambda: "No logind here" in agent.log_text())
        code = agent.stop(within=120)
        yield Ended(code, view, *statuses())
    finally:
        agent.stop()
        for path in paths:
            view.api.delete(f"{path}?gracePeriodSeconds=0")
        view.delete_node()


def test_sigterm_tells_the_cluster_that_the_node_is_shutting_down(ended):
    assert ended.code == 0
    ready = ended.view.condition("Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "KubeletNotReady", "node is shutting down")
    told = [event["message"] for event in ended.view.events(reason="Shutdown")]
    assert told == ["Shutdown manager detected shutdown event"]


def test_pods_end_in_kubelets_order_and_say_why(ended):
    assert ended.code == 0
    for status in (ended.common, ended.critical):
        assert (status["phase"], status["reason"]) == ("Failed", "Terminated")
        disruption = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
        assert (disruption["status"], disruption["reason"]) == ("True", "TerminationByKubelet")
        assert disruption["message"] == "Pod was terminated in response to imminent node shutdown."
    ends = [
        status["containerStatuses"][0]["state"]["terminated"]["finishedAt"] for status in (ended.common, ended.critical)
    ]
    assert ends[0] < ends[1]
