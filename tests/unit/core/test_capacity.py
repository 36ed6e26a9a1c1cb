import pytest

from agent.core.capacity import allocatable, capacity, parse_reserved
from agent.core.config import Config, Eviction, Resources
from agent.core.errors import ConfigError
from agent.core.eviction import parse_thresholds
from agent.core.model import Filesystem
from tests.fakes import GIB, facts, host_snapshot


def disk(kibibytes):
    return Filesystem(capacity_bytes=kibibytes * 1024, available_bytes=0, inodes=1, inodes_free=1)


def configured(hard=(), **resources):
    eviction = Eviction(hard=parse_thresholds(dict(hard)))
    return Config(node_name="n1", resources=Resources(**resources), eviction=eviction)


def test_capacity_is_the_whole_machine():
    assert capacity(facts())["capacity"] == {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def test_allocatable_is_capacity_less_reservations_and_hard_thresholds():
    config = configured(
        hard={"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%", "pid.available": "1"},
        kube_reserved=parse_reserved("--kube-reserved", {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "1Gi"}),
        system_reserved=parse_reserved("--system-reserved", {"cpu": "500m", "memory": "1Gi"}),
    )
    left = allocatable(facts(config=config))["allocatable"]
    assert left["cpu"] == "2500m"
    assert left["memory"] == "4620Mi"
    assert left["pods"] == "110"


def test_a_percentage_is_taken_in_float32_as_go_does():
    # kubelet v1.36 on the wire: 264212084Ki with nodefs.available<10% leaves 243497856212
    config = configured(hard={"nodefs.available": "10%"})
    snapshot = host_snapshot(nodefs=disk(264212084))
    assert allocatable(facts(config=config, host=snapshot))["allocatable"]["ephemeral-storage"] == "243497856212"


def test_huge_pages_are_a_resource_and_come_off_memory():
    snapshot = host_snapshot(hugepages_bytes={2 * 2**20: 2 * GIB, GIB: 0})
    told = facts(host=snapshot)
    assert capacity(told)["capacity"]["hugepages-2Mi"] == "2Gi"
    assert capacity(told)["capacity"]["hugepages-1Gi"] == "0"
    assert allocatable(told)["allocatable"]["memory"] == "6Gi"
    assert capacity(told)["capacity"]["memory"] == "8Gi"


def test_allocatable_is_never_negative():
    config = configured(system_reserved=parse_reserved("--system-reserved", {"memory": "9Gi"}))
    assert allocatable(facts(config=config))["allocatable"]["memory"] == "0"


@pytest.mark.parametrize(("per_core", "most", "pods"), [(0, 110, "110"), (10, 110, "40"), (50, 110, "110")])
def test_pods_per_core_can_only_lower_max_pods(per_core, most, pods):
    config = configured(max_pods=most, pods_per_core=per_core)
    assert capacity(facts(config=config))["capacity"]["pods"] == pods


def test_resources_that_others_put_on_the_node_stay():
    observed = {"capacity": {"example.com/gpu": "2", "cpu": "99"}}
    told = facts(observed=observed)
    assert capacity(told)["capacity"]["example.com/gpu"] == "2"
    assert capacity(told)["capacity"]["cpu"] == "4"
    assert allocatable(told)["allocatable"]["example.com/gpu"] == "2"


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"gpu": "1"}, '--kube-reserved value failed to parse: cannot reserve "gpu" resource'),
        ({"cpu": "-1"}, 'resource quantity for "cpu" cannot be negative: -1'),
        ({"cpu": "x"}, 'failed to parse quantity "x" for "cpu" resource'),
    ],
)
def test_a_wrong_reservation_is_named(pairs, message):
    with pytest.raises(ConfigError, match=message):
        parse_reserved("--kube-reserved", pairs)
