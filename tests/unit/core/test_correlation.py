from agent.core.correlation import Correlator
from agent.core.events import NodeEvent, event_object
from tests.fakes import START


def event(reason="R", message="m", number=1, **about):
    thing = {"kind": "Pod", "name": "p", **about} if about else None
    return event_object("n1", NodeEvent(reason, message), START, number, about=thing)


def test_an_event_told_again_becomes_a_count_on_the_first():
    correlator = Correlator()
    first = correlator.correlate(event(number=1), 0)
    again = correlator.correlate(event(number=2), 1)
    assert first.patch is None
    assert again.patch == {"count": 2, "lastTimestamp": "2026-01-02T03:04:05Z", "message": "m"}
    assert again.event["metadata"]["name"] == first.event["metadata"]["name"]
    assert correlator.correlate(event(number=3), 2).patch["count"] == 3


def test_different_messages_are_different_events():
    correlator = Correlator()
    assert [correlator.correlate(event(message=m), 0).patch for m in "abc"] == [None] * 3


def test_from_the_tenth_different_message_on_they_share_one_event():
    correlator = Correlator()
    told = [correlator.correlate(event(message=str(n), number=n), n) for n in range(12)]
    assert [t.event["message"] for t in told[8:10]] == ["8", "(combined from similar events): 9"]
    assert told[10].patch["message"] == "(combined from similar events): 10"
    assert told[10].event["metadata"]["name"] == told[9].event["metadata"]["name"]


def test_similar_messages_far_apart_are_not_combined():
    correlator = Correlator()
    told = [correlator.correlate(event(message=str(n), number=n), 601 * n) for n in range(12)]
    assert not any("combined" in t.event["message"] for t in told)


def test_a_flood_is_cut_off_after_25_and_trickles_one_per_5_minutes():
    correlator = Correlator()
    told = [correlator.correlate(event(number=n), 0) for n in range(30)]
    assert [t is not None for t in told] == [True] * 25 + [False] * 5
    assert correlator.correlate(event(number=31), 300) is not None
    assert correlator.correlate(event(number=32), 301) is None


def test_the_containers_of_a_pod_share_its_measure():
    correlator = Correlator()
    paths = [f"spec.containers{{c{n}}}" for n in range(30)]
    told = [correlator.correlate(event(number=n, uid="u", fieldPath=path), 0) for n, path in enumerate(paths)]
    assert [t.patch for t in told[:25]] == [None] * 25  # each is an event of its own
    assert told[25:] == [None] * 5


def test_two_pods_of_one_name_are_two():
    correlator = Correlator()
    assert [correlator.correlate(event(uid=uid), 0).patch for uid in ("u1", "u2")] == [None] * 2


def test_what_is_gone_is_forgotten():
    correlator = Correlator()
    for uid in ("u1", "u2"):
        correlator.correlate(event(uid=uid), 0)
    correlator.forget("u1")
    assert correlator.correlate(event(uid="u1"), 1).patch is None
    assert correlator.correlate(event(uid="u2"), 1).patch["count"] == 2


def test_it_remembers_a_thousand_objects_and_no_more():
    correlator = Correlator()
    for number in range(1025):
        correlator.correlate(event(uid=f"u{number}"), 0)
    assert correlator.correlate(event(uid="u1024"), 1).patch["count"] == 2
    assert correlator.correlate(event(uid="u0"), 1).patch is None
