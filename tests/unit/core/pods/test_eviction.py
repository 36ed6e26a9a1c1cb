import pytest

from agent.core.pods.eviction import (
    eviction_reason,
    grace_seconds,
    most_urgent,
    rank_for_eviction,
    reclaim_event,
    resource_of,
)
from agent.core.pods.info import pod_info
from agent.core.pressure import Observation, Threshold, ThresholdValue
from tests.unit.core.pods.builders import container, pod

MEMORY = Threshold("memory.available", ThresholdValue(100 * 2**20))
DISK = Threshold("nodefs.available", ThresholdValue(percent=10.0))
INODES = Threshold("nodefs.inodesFree", ThresholdValue(percent=5.0))
PIDS = Threshold("pid.available", ThresholdValue(2000))
SOFT = Threshold("memory.available", ThresholdValue(2**30), grace_seconds=90.0)


def named(name, memory="0", **spec):
    the_pod = pod(container(resources={"requests": {"memory": memory}}), **spec)
    the_pod["metadata"]["name"] = name
    return pod_info(the_pod)


def names(pods):
    return [one.name for one in pods]


def test_the_lowest_priority_goes_first_then_who_asked_for_least():
    pods = [named("large", "2Gi"), named("small", "1Mi"), named("dear", priority=5), named("cheap", "4Gi", priority=-1)]
    assert names(rank_for_eviction(pods, MEMORY)) == ["cheap", "small", "large", "dear"]


def test_what_the_node_needs_stays():
    mirror = named("static", annotations={"kubernetes.io/config.mirror": "x"})
    assert rank_for_eviction([named("critical", priority=2_000_000_000), mirror], MEMORY) == []


def test_memory_is_most_urgent():
    assert most_urgent([INODES, DISK, MEMORY]) == MEMORY
    assert most_urgent([]) is None


@pytest.mark.parametrize(
    ("threshold", "observation", "told"),
    [
        (MEMORY, Observation(52 * 2**20, 2**30), "memory. Threshold quantity: 100Mi, available: 52Mi. "),
        (DISK, Observation(2**20, 60 * 2**20), "ephemeral-storage. Threshold quantity: 6Mi, available: 1Mi. "),
        (PIDS, Observation(1000, 32768), "pids. Threshold quantity: 2k, available: 1k. "),
        (INODES, Observation(900, 100_000), "inodes. Threshold quantity: 5000, available: 900. "),
    ],
)
def test_an_evicted_pod_is_told_what_was_short(threshold, observation, told):
    reason, message = eviction_reason(threshold, {threshold.signal: observation})
    assert (reason, message) == ("Evicted", f"The node was low on resource: {told}")


def test_the_node_says_what_it_tries_to_get_back():
    assert reclaim_event(resource_of(DISK)).message == "Attempting to reclaim ephemeral-storage"


@pytest.mark.parametrize(("threshold", "wanted", "seconds"), [(MEMORY, 30, 1.0), (SOFT, 30, 20.0), (SOFT, 5, 5.0)])
def test_below_a_hard_threshold_there_is_no_time_to_lose(threshold, wanted, seconds):
    assert grace_seconds(pod_info(pod(terminationGracePeriodSeconds=wanted)), threshold, 20) == seconds
