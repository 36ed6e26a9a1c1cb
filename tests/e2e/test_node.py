"""A node's life on a real control plane, seen only through the cluster."""

import json
import os
import platform
import signal
import time

import psutil

from tests.cluster.node_view import condition
from tests.cluster.waiting import eventually


def test_this_machine_becomes_a_ready_node_with_a_lease_and_a_csinode(cluster, start_node, control_plane):
    start_node("--node-labels", "example.com/rack=r1", "--register-with-taints", "example.com/t=v:PreferNoSchedule")
    cluster.wait_until_ready()
    node, lease = cluster.node(), cluster.owned_lease()
    assert node["status"]["nodeInfo"]["kernelVersion"] == platform.release()
    assert node["status"]["capacity"]["memory"] == f"{psutil.virtual_memory().total // 1024}Ki"
    assert node["metadata"]["labels"]["example.com/rack"] == "r1"
    assert {"key": "example.com/t", "value": "v", "effect": "PreferNoSchedule"} in node["spec"]["taints"]
    assert lease["spec"]["holderIdentity"] == cluster.name
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert (
        control_plane.get("csinode", cluster.name)["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    )


def test_the_not_ready_taint_goes_and_events_tell_the_story(cluster, start_node):
    start_node()
    eventually(lambda: cluster.is_ready() and not cluster.node()["spec"].get("taints"), within=20)
    story = {"Starting", "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"}
    eventually(
        lambda: story <= {event["reason"] for event in cluster.events() if event["source"]["component"] == "kubelet"},
        within=10,
    )


def test_the_node_stays_ready_beyond_the_grace_period_and_is_never_refused(cluster, start_node):
    start_node()
    since = condition(cluster.wait_until_ready(), "Ready")["lastTransitionTime"]
    began = time.monotonic()
    time.sleep(60)  # the node-lifecycle controller gives a silent node up after 50 s
    assert cluster.condition("Ready")["lastTransitionTime"] == since
    requests, seconds = cluster.requests(), time.monotonic() - began
    assert not [request["requestURI"] for request in requests if request["responseStatus"]["code"] in {401, 403}]
    renewals = [request for request in requests if request["verb"] == "update"]
    assert 4 <= len(renewals) <= 2 + seconds / 10  # one more before Ready was seen
    reports = [request for request in requests if request["verb"] == "patch"]
    assert len(reports) <= 3  # an unchanged status is not sent again within 5 minutes


def test_killed_and_started_again_it_is_the_same_node(cluster, start_node):
    first = start_node()
    cluster.wait_until_ready()
    before, lease = cluster.node()["metadata"], cluster.owned_lease()
    first.kill()
    second = start_node()
    eventually(lambda: cluster.lease()["spec"]["renewTime"] != lease["spec"]["renewTime"], within=20)
    assert cluster.node()["metadata"]["uid"] == before["uid"]
    assert cluster.lease()["metadata"]["uid"] == lease["metadata"]["uid"]
    assert '"Node was previously registered"' in second.log_text()


def test_a_signal_ends_it_with_exit_code_0_and_leaves_node_and_lease(cluster, start_node):
    agent = start_node()
    cluster.wait_until_ready()
    cluster.owned_lease()
    assert agent.stop() == 0
    assert cluster.is_ready()
    assert cluster.lease()["spec"]["holderIdentity"] == cluster.name


def test_sighup_reads_the_verbosity_of_the_config_file_again(cluster, start_node, control_plane, tmp_path):
    config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    agent = start_node("--config", str(path))
    cluster.wait_until_ready()
    assert '"Recording event message for node"' not in agent.log_text()
    path.write_text(json.dumps(config | {"logging": {"verbosity": 2}}))
    os.kill(agent.pid, signal.SIGHUP)
    control_plane.kubectl("cordon", cluster.name)  # which is worth an event
    eventually(lambda: '"Recording event message for node"' in agent.log_text(), within=20)


def test_without_register_node_it_waits_for_a_node_made_by_hand(cluster, start_node, control_plane):
    agent = start_node("--register-node=false", "--node-status-update-frequency=1s")
    eventually(lambda: '"Unable to update node status"' in agent.log_text())
    control_plane.kubectl(
        "create", "-f", "-", input=f'{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{cluster.name}"}}}}'
    )
    cluster.wait_until_ready()
    labels = cluster.node()["metadata"]["labels"]
    assert labels["kubernetes.io/os"] == "linux"
    assert "kubernetes.io/hostname" not in labels


def heartbeats(cluster):
    """The status reports among the node's requests."""
    return [request for request in cluster.requests() if request["verb"] == "patch"]


def foreign_fields(node):
    """What is not ours: everything but the four conditions and what the API server counts."""
    ours = {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}
    metadata = {
        key: value for key, value in node["metadata"].items() if key not in {"resourceVersion", "managedFields"}
    }
    conditions = [c for c in node["status"]["conditions"] if c["type"] not in ours]
    rest = {key: value for key, value in node["status"].items() if key != "conditions"}
    return metadata, node["spec"], conditions, rest


def test_what_others_write_is_untouched_after_1000_heartbeats(cluster, start_node, control_plane):
    start_node("--node-status-update-frequency=60ms", "--node-status-report-frequency=1ms")
    eventually(lambda: cluster.is_ready() and not cluster.node()["spec"].get("taints"), within=60)
    control_plane.kubectl("label", "node", cluster.name, "example.com/mine=1")
    control_plane.kubectl("annotate", "node", cluster.name, "example.com/mine=a note")
    control_plane.kubectl("taint", "node", cluster.name, "example.com/mine=1:NoSchedule")
    foreign = {
        "conditions": [{"type": "Foreign", "status": "True", "reason": "R", "message": "m"}],
        "capacity": {"example.com/gpu": "2"},
        "allocatable": {"example.com/gpu": "2"},
        "volumesAttached": [{"name": "v", "devicePath": "/dev/v"}],
    }
    patch = ("--subresource=status", "--type=strategic", "-p", json.dumps({"status": foreign}))
    control_plane.kubectl("patch", "node", cluster.name, *patch)
    before, sent = foreign_fields(cluster.node()), len(heartbeats(cluster))
    eventually(lambda: len(heartbeats(cluster)) >= sent + 1000, within=220, every=2)
    after = json.loads(control_plane.kubectl("get", "node", cluster.name, "-o", "json", "--show-managed-fields"))
    assert foreign_fields(after) == before
    (ours,) = [
        entry
        for entry in after["metadata"]["managedFields"]
        if entry.get("subresource") == "status" and entry["manager"] == "kubelet"
    ]
    owned = json.dumps(ours["fieldsV1"])
    assert "f:lastHeartbeatTime" in owned
    assert not [name for name in ("Foreign", "example.com", "volumesAttached", "f:taints") if name in owned]
