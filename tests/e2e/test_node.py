"""A node's life on a real control plane, seen only through the cluster."""

import json
import os
import platform
import signal
import sys
from datetime import datetime
from itertools import pairwise

import psutil
import pytest

from tests.cluster import audit
from tests.cluster.agent_process import apart
from tests.cluster.api import LEASES, NODES, STRATEGIC
from tests.cluster.command import completed
from tests.cluster.node_view import condition
from tests.cluster.waiting import eventually


def test_this_machine_becomes_a_ready_node_with_a_lease_and_a_csinode(cluster, start_node):
    agent = start_node(
        "--node-labels", "example.com/rack=r1", "--register-with-taints", "example.com/t=v:PreferNoSchedule"
    )
    cluster.wait_until_ready()
    assert "Pods that are scheduled here are simulated, none of their containers runs" in agent.log_text()
    node, lease = cluster.node(), cluster.owned_lease()
    assert node["status"]["nodeInfo"]["kernelVersion"] == platform.release()
    assert node["status"]["capacity"]["memory"] == f"{psutil.virtual_memory().total // 1024}Ki"
    assert node["metadata"]["labels"]["example.com/rack"] == "r1"
    assert {"key": "example.com/t", "value": "v", "effect": "PreferNoSchedule"} in node["spec"]["taints"]
    assert lease["spec"]["holderIdentity"] == cluster.name
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    csinode = eventually(cluster.csinode)
    assert csinode["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_the_not_ready_taint_goes_and_events_tell_the_story(cluster, start_node):
    start_node()
    eventually(lambda: cluster.is_ready() and not cluster.node()["spec"].get("taints"))
    story = {"Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"}
    eventually(
        lambda: story <= {event["reason"] for event in cluster.events() if event["source"]["component"] == "kubelet"}
    )


GRACE_SECONDS = 50  # after which the node-lifecycle controller gives a silent node up
LEASE_SECONDS, RENEWAL_SECONDS = 40, 10


@pytest.mark.slow
def test_the_node_stays_ready_beyond_the_grace_period_and_is_never_refused(cluster, start_node, control_plane):
    start_node()
    since = condition(cluster.wait_until_ready(), "Ready")["lastTransitionTime"]
    cluster.owned_lease()
    times = renewals_for(cluster, GRACE_SECONDS + RENEWAL_SECONDS)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert all(RENEWAL_SECONDS <= gap < LEASE_SECONDS for gap in gaps), gaps
    assert cluster.condition("Ready")["lastTransitionTime"] == since
    requests = audit.requests_of(cluster.name, control_plane.audit_log)
    assert not [request for request in requests if request.code in {401, 403}]
    reports = [request for request in requests if (request.verb, request.target) == ("patch", "nodes/status")]
    assert len(reports) <= 3  # an unchanged status is not sent again within 5 minutes


def renewals_for(cluster, seconds):
    """When the lease was renewed, by its own words, until they span so many seconds."""
    times = []
    with cluster.api.watch(LEASES, fieldSelector=f"metadata.name={cluster.name}", timeoutSeconds="300") as events:
        for event in events:
            times.append(datetime.fromisoformat(event["object"]["spec"]["renewTime"]))
            if (times[-1] - times[0]).total_seconds() > seconds:
                return times
    raise AssertionError(times)


def test_killed_and_started_again_it_is_the_same_node(cluster, start_node):
    first = start_node()
    cluster.wait_until_ready()
    before, lease = cluster.node()["metadata"], cluster.owned_lease()
    first.kill()
    second = start_node()
    eventually(lambda: cluster.lease()["spec"]["renewTime"] != lease["spec"]["renewTime"])
    assert cluster.node()["metadata"]["uid"] == before["uid"]
    assert cluster.lease()["metadata"]["uid"] == lease["metadata"]["uid"]
    eventually(lambda: '"Node was previously registered"' in second.log_text())


def test_a_signal_ends_it_with_exit_code_0_and_leaves_node_and_lease(cluster, start_node):
    agent = start_node()
    cluster.wait_until_ready()
    cluster.owned_lease()
    assert agent.stop() == 0
    assert cluster.is_ready()
    assert cluster.lease()["spec"]["holderIdentity"] == cluster.name


def test_sighup_reads_the_verbosity_of_the_config_file_again(cluster, start_node, tmp_path):
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    agent = start_node("--config", str(path))
    cluster.wait_until_ready()
    assert '"Recording event message for node"' not in agent.log_text()
    path.write_text(json.dumps(config | {"logging": {"verbosity": 2}}))
    os.kill(agent.pid, signal.SIGHUP)
    eventually(lambda: "Reloading credentials and log settings" in agent.log_text())
    cluster.api.patch(f"{NODES}/{cluster.name}", {"spec": {"unschedulable": True}})  # which is worth an event
    eventually(lambda: '"Recording event message for node"' in agent.log_text())


def test_without_register_node_it_waits_for_a_node_made_by_hand(cluster, start_node):
    agent = start_node("--register-node=false", "--node-status-update-frequency=1s")
    eventually(lambda: '"Unable to update node status"' in agent.log_text())
    cluster.create_node()
    cluster.wait_until_ready()
    labels = cluster.node()["metadata"]["labels"]
    assert labels["kubernetes.io/os"] == "linux"
    assert "kubernetes.io/hostname" not in labels


def heartbeats(cluster):
    """How many status reports the API server has had of the node."""
    kinds = audit.by_kind(audit.requests_of(cluster.name, cluster.plane.audit_log))
    return kinds["patch nodes/status"]


def foreign_fields(node):
    """What is not ours: everything but the four conditions and what the API server counts."""
    ours = {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}
    metadata = {
        key: value for key, value in node["metadata"].items() if key not in {"resourceVersion", "managedFields"}
    }
    conditions = [c for c in node["status"]["conditions"] if c["type"] not in ours]
    rest = {key: value for key, value in node["status"].items() if key != "conditions"}
    return metadata, node["spec"], conditions, rest


def test_what_others_write_is_untouched_after_100_heartbeats(cluster, start_node):
    start_node("--node-status-update-frequency=60ms", "--node-status-report-frequency=1ms")
    eventually(lambda: cluster.is_ready() and not cluster.node()["spec"].get("taints"))
    path, mine = f"{NODES}/{cluster.name}", {"example.com/mine": "1"}
    taints = [{"key": "example.com/mine", "value": "1", "effect": "NoSchedule"}]
    cluster.api.patch(path, {"metadata": {"labels": mine, "annotations": mine}, "spec": {"taints": taints}}, STRATEGIC)
    foreign = {
        "conditions": [{"type": "Foreign", "status": "True", "reason": "R", "message": "m"}],
        "capacity": {"example.com/gpu": "2"},
        "allocatable": {"example.com/gpu": "2"},
        "volumesAttached": [{"name": "v", "devicePath": "/dev/v"}],
    }
    cluster.api.patch(f"{path}/status", {"status": foreign}, STRATEGIC)
    before, sent = foreign_fields(cluster.node()), heartbeats(cluster)
    eventually(lambda: heartbeats(cluster) >= sent + 100, every=0.5)
    after = cluster.api.get(path)
    assert foreign_fields(after) == before
    (ours,) = [
        entry
        for entry in after["metadata"]["managedFields"]
        if entry.get("subresource") == "status" and entry["manager"] == "kubelet"
    ]
    owned = json.dumps(ours["fieldsV1"])
    assert "f:lastHeartbeatTime" in owned
    assert not [name for name in ("Foreign", "example.com", "volumesAttached", "f:taints") if name in owned]


@pytest.mark.parametrize("command", [(), ("config", "check")], ids=["daemon", "config check"])
def test_credentials_of_another_node_end_it_with_the_flag_to_use(control_plane, tmp_path, command):
    kubeconfig = control_plane.node_kubeconfig("edge-1")
    flags = [f"--kubeconfig={kubeconfig}", "--hostname-override=vm", "--healthz-port=0", *apart(tmp_path)]
    ended = completed([sys.executable, "-m", "agent", *command, *flags])
    assert ended.returncode == 1
    assert "for node edge-1, and this is node vm: use --hostname-override=edge-1" in ended.stderr.splitlines()[-1]
