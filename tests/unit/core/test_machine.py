from datetime import UTC, datetime, timedelta

import pytest

from agent.core.machine import idle_usage, is_of_machine, machine_of
from agent.core.nodestatus import missing_capacity
from agent.core.pressure import parse_thresholds, signal_observations
from agent.core.quantity import Quantity
from tests.fakes import facts


def machine(**amounts):
    return machine_of({name.replace("_", "-"): Quantity.parse(text) for name, text in amounts.items()})


def test_a_machine_has_the_resources_that_are_asked_for():
    made = machine(cpu="32", memory="256Gi", ephemeral_storage="1Ti")
    assert (made.cpu_millicores, made.memory_bytes, made.nodefs.capacity_bytes) == (32_000, 2**38, 2**40)
    assert made.online_cpus == frozenset(range(32))


def test_what_is_not_asked_for_is_as_on_any_small_machine():
    made = machine()
    assert (made.cpu_millicores, made.memory_bytes, made.nodefs.capacity_bytes) == (4000, 16 * 2**30, 100 * 2**30)
    assert missing_capacity(facts(host=made)) == []


def test_huge_pages_are_those_of_the_machine():
    assert machine(hugepages_2Mi="1Gi").hugepages_bytes == {2 * 2**20: 2**30}


def test_nothing_runs_on_it_so_no_threshold_is_met():
    made = machine(memory="1Gi", ephemeral_storage="1Gi")
    thresholds = parse_thresholds({"memory.available": "99%", "nodefs.available": "99%", "nodefs.inodesFree": "99%"})
    observed = signal_observations(made)
    assert not any(threshold.is_met(observed[threshold.signal], was_due=False) for threshold in thresholds)


def test_a_million_cpus_cost_no_memory():
    made = machine(cpu="1M")
    assert made.cpu_millicores == 10**9
    assert len(made.online_cpus) == 8192


@pytest.mark.parametrize(
    ("resource", "expected"),
    [("cpu", True), ("memory", True), ("hugepages-1Gi", True), ("pods", False), ("nvidia.com/gpu", False)],
)
def test_devices_and_pods_are_no_part_of_the_machine(resource, expected):
    assert is_of_machine(resource) is expected


def test_an_idle_machine_has_used_a_little_cpu_since_it_came_up_and_some_of_its_own_memory():
    since = datetime(2026, 1, 1, tzinfo=UTC)
    usage = idle_usage(machine_of({}), since=since, now=since + timedelta(hours=1))
    assert usage.root.cpu.total_ns == 36 * 10**9
    assert (usage.root.memory.working_set_bytes, usage.root.memory.total_bytes) == (256 * 2**20, 16 * 2**30)
    small = idle_usage(machine_of({"memory": Quantity.of_bytes(2**30)}), since=since, now=since)
    assert small.root.memory.working_set_bytes == 64 * 2**20
