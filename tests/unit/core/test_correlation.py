from agent.core.correlation import Correlator
from agent.core.events import NodeEvent, event_object
from tests.fakes import START


def event(reason="R", message="m", number=1):
    return event_object("n1", NodeEvent(reason, message), START, number)


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
