import json

from agent.loops.podshelf import PodShelf


def pod(name, version="1", **status):
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "resourceVersion": version,
        "managedFields": [{}],
    }
    spec = {"containers": [{"name": "c", "image": "i"}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}


def shelf(*pods):
    found = PodShelf()
    for one in pods:
        found.keep(one)
    return found


def names(encoded):
    return [json.loads(one)["metadata"]["name"] for one in encoded]


def test_pods_are_kept_as_the_items_of_a_pod_list_are_written():
    (kept,) = shelf(pod("a", phase="Running")).encoded()
    assert json.loads(kept) == {
        "metadata": {"name": "a", "namespace": "ns", "uid": "uid-a", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


def test_who_reads_while_pods_come_and_go_gets_those_that_are_left_as_they_are_then():
    pods = shelf(pod("a"), pod("b"), pod("c"))
    reading = pods.encoded()
    first = next(reading)
    pods.forget("uid-b")
    pods.keep(pod("c", "2", phase="Failed"))
    pods.keep(pod("d"))
    rest = list(reading)
    assert names([first, *rest]) == ["a", "c"]
    assert json.loads(rest[-1])["status"] == {"phase": "Failed"}


def test_a_pod_is_found_by_its_name():
    pods = shelf(pod("a"), pod("b"))
    assert pods.find("ns", "b")["metadata"]["uid"] == "uid-b"
    assert pods.find("other", "b") is None


def test_what_metrics_need_is_known_without_decoding():
    running = {"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    pods = shelf(pod("a"))
    pods.keep(pod("a", "2", phase="Running", startTime="2026-01-01T00:00:00Z", containerStatuses=[running]))
    (info,) = pods.infos()
    assert (info.namespace, info.name, info.uid, info.phase) == ("ns", "a", "uid-a", "Running")
    assert (info.running, info.states) == ((("c", "2026-01-01T00:00:00Z"),), {"running": 1})
