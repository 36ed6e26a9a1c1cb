import json

import pytest
from aiohttp.test_utils import make_mocked_request

from agent.adapters.metrics.kubelet_metrics import KubeletMetrics
from agent.adapters.server.containers import ContainerEndpoints
from agent.controllers.pod_store import PodStore
from agent.core.metrics import Registry
from agent.core.pods.info import RunningContainer
from tests.settings import Config


def pod(name, version="1", **status):
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": version}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


def stored(*pods):
    store = PodStore()
    for each in pods:
        store.upsert(each)
    return store


def names(encoded):
    return [json.loads(one)["metadata"]["name"] for one in encoded]


def test_pods_are_kept_as_the_items_of_a_pod_list_are_written():
    (kept,) = stored(pod("a", phase="Running")).encoded()
    assert json.loads(kept) == {
        "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


def test_who_reads_while_pods_come_and_go_gets_those_that_are_left_as_they_are_then():
    pods = stored(pod("a"), pod("b"), pod("c"))
    reading = pods.encoded()
    first = next(reading)
    pods.remove("uid-b")
    pods.upsert(pod("c", "2", phase="Failed"))
    pods.upsert(pod("d"))
    rest = list(reading)
    assert names([first, *rest]) == ["a", "c"]
    assert json.loads(rest[-1])["status"] == {"phase": "Failed"}


def test_a_pod_is_found_by_its_name():
    pods = stored(pod("a"), pod("b"))
    assert pods.by_name("ns", "b").info.uid == "uid-b"
    assert pods.by_name("other", "b") is None
    pods.remove("uid-b")
    assert pods.by_name("ns", "b") is None


def test_a_new_pod_takes_the_name_of_one_that_is_removed_later():
    pods = stored(pod("a"))
    again = pod("a")
    again["metadata"]["uid"] = "uid-again"
    pods.upsert(again)
    pods.remove("uid-a")
    assert pods.by_name("ns", "a").info.uid == "uid-again"


def test_metrics_need_no_decoding():
    running = {"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    pods = stored(pod("a"))
    pods.upsert(pod("a", "2", phase="Running", startTime="2026-01-01T00:00:00Z", containerStatuses=[running]))
    (info,) = pods.infos()
    assert (info.namespace, info.name, info.uid, info.phase) == ("ns", "a", "uid-a", "Running")
    assert (info.running, info.states) == ((RunningContainer("c", "2026-01-01T00:00:00Z"),), {"running": 1})


def test_counts_follow_every_change():
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    pods = stored(
        pod("a", phase="Running", containerStatuses=[{"name": "c", "state": state}]), pod("b", phase="Pending")
    )
    assert (pods.counts.running_pods, +pods.counts.containers) == (1, {"running": 1})
    ended = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
    pods.upsert(pod("a", "2", phase="Succeeded", containerStatuses=ended))
    pods.upsert(pod("b", "2", phase="Running"))
    assert (pods.counts.running_pods, +pods.counts.containers) == (1, {"terminated": 1})
    pods.remove("uid-a")
    pods.remove("uid-b")
    assert (pods.counts.running_pods, +pods.counts.containers) == (0, {})


def test_a_pod_that_cannot_be_read_changes_nothing():
    pods = stored(pod("a", phase="Running"))
    odd = pod("a", "2", phase="Pending")
    odd["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "nonsense"}}
    with pytest.raises(ValueError, match="quantities must match"):
        pods.upsert(odd)
    assert (pods.get("uid-a").info.phase, pods.counts.running_pods) == ("Running", 1)


@pytest.mark.anyio
async def test_500_pods_answer_a_log_request_with_one_decode_and_a_scrape_with_none(clock):
    decoded = []

    def decode(packed):
        decoded.append(packed)
        return json.loads(packed)

    store = PodStore(decode)
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    for number in range(500):
        statuses = [{"name": "c", "image": "i", "state": state, "lastState": {}, "restartCount": 0}]
        store.upsert(pod(f"p{number}", phase="Running", startTime="2026-01-01T00:00:00Z", containerStatuses=statuses))
    metrics = KubeletMetrics(Config(), metrics=Registry(), pods=lambda: store.counts, feature_gates={})
    page = (await metrics.metrics()).decode()
    assert "kubelet_running_pods 500.0\n" in page
    assert 'kubelet_running_containers{container_state="running"} 500.0\n' in page
    store.running(), store.terminating(), store.mirror_hashes(), store.infos()
    assert decoded == []

    endpoints = ContainerEndpoints(
        lambda namespace, name: store.by_name(namespace, name).decode(), clock, understands_commands=True
    )
    request = make_mocked_request("GET", "/containerLogs/ns/p321/c")
    names = {"podNamespace": "ns", "podID": "p321", "containerName": "c"}
    answer = await endpoints.logs(request, names)
    assert (answer.status, len(decoded)) == (200, 1)
    assert "container c of i" in answer.text
