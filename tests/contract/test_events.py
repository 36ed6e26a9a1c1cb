"""Events: where they live, and how they are written."""

from __future__ import annotations

from tests.cluster.api import EVENTS, Api


def test_events_of_cluster_objects_live_in_default(api: Api, name: str) -> None:
    about = {"kind": "Node", "name": name, "namespace": "elsewhere"}
    answer = api.ask("POST", EVENTS, {"metadata": {"name": name}, "involvedObject": about})
    fault = 'involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'
    assert answer.refusal == (422, "Invalid", f'Event "{name}" is invalid: {fault}')


def test_an_event_is_written_with_its_nulls(api: Api, name: str) -> None:
    about = {"kind": "Node", "name": name}
    made = api.create(EVENTS, {"metadata": {"name": name}, "involvedObject": about, "reason": "R"})
    del made["metadata"]
    assert made == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": about,
        "reason": "R",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


def test_the_younger_api_shows_the_same_event(api: Api, name: str) -> None:
    about = {"kind": "Node", "name": name}
    body = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": "M", "count": 3}
    made = api.create(EVENTS, body)
    seen = api.get(f"/apis/events.k8s.io/v1/namespaces/default/events/{name}")
    assert (seen["apiVersion"], seen["kind"]) == ("events.k8s.io/v1", "Event")
    assert (seen["regarding"], seen["note"], seen["deprecatedCount"]) == (about, "M", 3)
    assert seen["metadata"]["uid"] == made["metadata"]["uid"]
