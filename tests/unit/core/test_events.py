import pytest

from agent.core.events import NodeEvent, event_object, schedulable_events, start_events, status_events
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
