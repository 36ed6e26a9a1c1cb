import pytest

from agent.core.events import Correlator, NodeEvent, event_object, schedulable_events, start_events, status_events
from agent.core.nodestatus import conditions
from tests.fakes import START, facts, host_snapshot


def test_a_new_node_tells_its_pressure_conditions_but_not_ready():
    reasons = [event.reason for event in status_events("n1", {}, conditions(facts()))]
    assert reasons == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


def test_a_condition_that_flips_is_told_once():
    before = conditions(facts(problems=("x",)))
    after = conditions(facts(observed=before, pressure=frozenset({"DiskPressure"})))
    assert status_events("n1", before, after) == [
        NodeEvent("NodeHasDiskPressure", "Node n1 status is now: NodeHasDiskPressure"),
        NodeEvent("NodeReady", "Node n1 status is now: NodeReady"),
    ]
    assert status_events("n1", after, after) == []


def test_another_boot_id_is_a_reboot_and_none_is_not():
    host = host_snapshot(boot_id="b")
    rebooted = NodeEvent("Rebooted", "Node n1 has been rebooted, boot id: b", "Warning")
    assert start_events("n1", {"nodeInfo": {"bootID": "a"}}, host) == [rebooted]
    assert start_events("n1", {"nodeInfo": {"bootID": "b"}}, host) == []
    assert start_events("n1", {}, host) == []


@pytest.mark.parametrize(("version", "told"), [(1, ["CgroupV1"]), (2, []), (0, [])])
def test_a_machine_with_cgroup_v1_is_warned_of(version, told):
    assert [event.reason for event in start_events("n1", {}, host_snapshot(cgroup_version=version))] == told


def test_an_event_names_the_node_without_its_uid():
    event = event_object("n1", NodeEvent("Starting", "Starting kubelet."), START, 1)
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert event["source"] == {"component": "kubelet", "host": "n1"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-02T03:04:05Z"


def test_two_events_of_one_moment_have_different_names():
    names = {event_object("n1", NodeEvent("a", "b"), START, number)["metadata"]["name"] for number in (1, 2)}
    assert len(names) == 2


def test_cordon_and_uncordon_are_told():
    assert schedulable_events("n1", was_cordoned=False, is_cordoned=True)[0].reason == "NodeNotSchedulable"
    assert schedulable_events("n1", was_cordoned=True, is_cordoned=False)[0].reason == "NodeSchedulable"
    assert schedulable_events("n1", was_cordoned=True, is_cordoned=True) == []


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
