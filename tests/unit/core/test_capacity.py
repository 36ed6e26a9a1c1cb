import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.capacity import check_reservations, is_extended, parse_cpu_list, parse_reserved
from agent.core.errors import ConfigError
from agent.core.model import Filesystem
from agent.core.nodestatus import allocatable, capacity, missing_capacity
from agent.core.pressure import parse_thresholds
from agent.core.quantity import Quantity
from tests.fakes import GIB, facts, host_snapshot
from tests.settings import Eviction, NodeConfig, Resources


def disk(kibibytes):
    return Filesystem(capacity_bytes=kibibytes * 1024, available_bytes=0, inodes=1, inodes_free=1)


def configured(hard=(), **resources):
    eviction = Eviction(hard=parse_thresholds(dict(hard)))
    return NodeConfig(node_name="n1", resources=Resources(**resources), eviction=eviction)


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


def test_soft_thresholds_take_nothing_off_allocatable():
    soft = parse_thresholds({"memory.available": "1Gi"}, grace_periods={"memory.available": "1m"})
    config = NodeConfig(node_name="n1", eviction=Eviction(soft=soft))
    assert allocatable(facts(config=config))["allocatable"]["memory"] == "8Gi"


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


def quantities(**pairs):
    return {name.replace("_", "-"): Quantity.parse(text) for name, text in pairs.items()}


def test_the_worked_example_of_the_readme():
    config = configured(
        hard={"memory.available": "500Mi", "nodefs.available": "10%"},
        overrides=quantities(cpu="16", memory="32Gi", ephemeral_storage="100Gi"),
        kube_reserved=quantities(cpu="1", memory="2Gi", ephemeral_storage="1Gi"),
        system_reserved=quantities(cpu="500m", memory="1Gi", ephemeral_storage="1Gi"),
    )
    left = allocatable(facts(config=config))["allocatable"]
    assert left["cpu"] == "14500m"
    assert left["memory"] == "29196Mi"  # 28.5 GiB
    assert int(left["ephemeral-storage"]) == pytest.approx(88 * GIB, abs=200)  # 10 % is float32


def test_made_to_measure_resources_replace_or_join_the_hosts():
    config = configured(
        overrides=quantities(cpu="32", memory="256Gi", pods="5"), extended={"nvidia.com/gpu": Quantity.parse("8")}
    )
    told = facts(config=config)
    expected = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "5", "nvidia.com/gpu": "8"}
    assert capacity(told)["capacity"] == expected
    assert allocatable(told)["allocatable"] == expected


def test_reserved_cpus_replace_the_cpu_of_both_reservations():
    config = configured(
        reserved_cpus="0-1", kube_reserved=quantities(cpu="3"), system_reserved=quantities(cpu="3", memory="1Gi")
    )
    left = allocatable(facts(config=config))["allocatable"]
    assert (left["cpu"], left["memory"]) == ("2", "7Gi")


def test_without_local_storage_isolation_there_is_no_ephemeral_storage():
    told = facts(config=configured(local_storage=False))
    assert "ephemeral-storage" not in capacity(told)["capacity"]
    assert missing_capacity(told) == []


def test_hard_thresholds_can_be_kept_off_allocatable():
    config = configured(hard={"memory.available": "1Gi"}, ignore_eviction=True)
    assert allocatable(facts(config=config))["allocatable"]["memory"] == "8Gi"


def test_a_disk_that_cannot_be_read_is_missing_capacity():
    assert missing_capacity(facts(host=host_snapshot(nodefs=None))) == ["ephemeral-storage"]


def test_more_reserved_than_there_is_is_an_error_and_all_of_it_is_not():
    check_reservations(configured(system_reserved=quantities(memory="8Gi")), host_snapshot())
    with pytest.raises(ConfigError, match=r'Resource "memory" has a reservation of 9Gi but capacity of 8Gi'):
        check_reservations(configured(system_reserved=quantities(memory="9Gi")), host_snapshot())


def test_reserved_cpus_must_be_online():
    check_reservations(configured(reserved_cpus="0-3"), host_snapshot())
    with pytest.raises(ConfigError, match=r"reserved-cpus: 0,9 is not a subset of online-cpus: 0-3"):
        check_reservations(configured(reserved_cpus="0,9"), host_snapshot())


def test_cpu_lists_are_read_as_the_kernel_writes_them():
    assert parse_cpu_list("0-2,8") == {0, 1, 2, 8}
    assert parse_cpu_list("") == frozenset()
    with pytest.raises(ConfigError, match="unable to parse reserved-cpus list"):
        parse_cpu_list("a-b")


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("x.kubernetes.io/y", False),
        ("requests.a/b", False),
    ],
)
def test_extended_resources_are_those_of_neither_kubernetes_nor_the_host(name, extended):
    assert is_extended(name) is extended


RESERVATIONS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.integers(0, 6000).map("{}m".format),
        "memory": st.integers(0, 12 * GIB).map(str),
        "ephemeral-storage": st.integers(0, 150).map("{}Gi".format),
    },
)
THRESHOLDS = st.fixed_dictionaries(
    {},
    optional={
        "memory.available": st.integers(1, 10 * GIB).map(str),
        "nodefs.available": st.integers(1, 99).map("{}%".format),
    },
)


def amounts(told):
    return {name: Quantity.parse(text).nano for name, text in told.items()}


@given(THRESHOLDS, RESERVATIONS, RESERVATIONS, st.integers(0, 5000))
def test_allocatable_is_between_nothing_and_capacity_and_falls_with_what_is_held_back(hard, kube, system, pages):
    kube, system = parse_reserved("--kube-reserved", kube), parse_reserved("--system-reserved", system)
    host = host_snapshot(hugepages_bytes={2**21: pages * 2**21})
    steps = ({}, {"kube_reserved": kube}, {"kube_reserved": kube, "system_reserved": system})
    configs = [configured(), *(configured(hard=hard, **reserved) for reserved in steps)]
    falling = [amounts(allocatable(facts(config=config, host=host))["allocatable"]) for config in configs]
    for name, most in amounts(capacity(facts(host=host))["capacity"]).items():
        offered = [left[name] for left in falling]
        assert [most, *offered, 0] == sorted([most, *offered, 0], reverse=True)


def test_an_allocatable_that_is_set_is_reported_as_it_is():
    config = configured(kube_reserved=quantities(cpu="3"), allocatable=quantities(cpu="3920m", memory="7Gi"))
    assert allocatable(facts(config=config))["allocatable"] == {"cpu": "3920m", "memory": "7Gi"}
