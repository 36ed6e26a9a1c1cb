from collections import Counter
from dataclasses import replace
from functools import partial
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core import fleet
from agent.core.errors import ConfigError
from agent.core.fleet import (
    GroupError,
    NodeModel,
    StartupRule,
    difference,
    plans,
    reached_at,
    region_of,
    scaled,
    spread,
)
from agent.core.model import HostSnapshot
from agent.core.name_template import NameTemplate
from tests.settings import NodeConfig, Registration

MACHINE = HostSnapshot(cpu_millicores=4000, memory_bytes=16 * 2**30)
MODEL = NodeModel(config=NodeConfig(), machine=MACHINE)

Group = partial(fleet.Group, name="gpu", count=3, models=(MODEL,), template=NameTemplate.parse("{group}-{index}"))
Fleet = partial(fleet.Fleet, name="lab", groups=(Group(),))

WEIGHTS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(1, 9), min_size=1)


def of_one_group(**fields):
    return list(plans(Fleet(groups=(Group(**fields),))))


def copied(name, *, labels=(), provider_id="", machine_id=""):
    """The model of a node that stands in another cluster."""
    registration = Registration(labels=dict(labels), provider_id=provider_id)
    return NodeModel(
        config=NodeConfig(node_name=name, registration=registration),
        machine=replace(MACHINE, machine_id=machine_id, system_uuid=machine_id, boot_id=machine_id),
    )


# --- names


def test_nodes_are_numbered_from_0():
    assert [plan.name for plan in of_one_group()] == ["gpu-0", "gpu-1", "gpu-2"]


def test_without_a_template_nodes_have_the_names_of_their_models_and_further_ones_a_number():
    nodes = of_one_group(template=None, models=(copied("a"), copied("b")), count=5)
    assert [plan.name for plan in nodes] == ["a", "b", "a-1", "b-1", "a-2"]


@pytest.mark.parametrize(
    ("groups", "place", "message"),
    [
        ([Group(template=NameTemplate.parse("n"))], (0, "nameTemplate"), 'two nodes would have the name "n"'),
        (
            [Group(), Group(name="other", template=NameTemplate.parse("gpu-{index}"))],
            (1, "nameTemplate"),
            'two nodes would have the name "gpu-0", one of them in group gpu',
        ),
        ([Group(template=NameTemplate.parse("N-{index}"))], (0, "nameTemplate"), '"N-0" is no name of a Node: a lower'),
        ([Group(template=NameTemplate.parse("n" * 300))], (0, "nameTemplate"), "must be no more than 253 bytes"),
        ([Group(), Group()], (1, "name"), 'there are two groups "gpu"'),
        ([Group(count=-1)], (0, "count"), "-1 is not from 0 to 65536"),
        ([Group(count=65537)], (0, "count"), "65537 is not from 0 to 65536"),
    ],
)
def test_groups_that_cannot_be_are_refused_with_their_place(groups, place, message):
    with pytest.raises(GroupError) as refusal:
        Fleet(groups=tuple(groups))
    assert (refusal.value.position, refusal.value.field) == place
    assert message in str(refusal.value)


# --- zones


def test_nodes_go_to_zones_by_weight():
    nodes = of_one_group(
        count=6, zones={"us-east-1a": 2, "us-east-1b": 1}, template=NameTemplate.parse("{zone}{index}")
    )
    assert [plan.name[8:] for plan in nodes] == ["1a0", "1b1", "1a2", "1a3", "1b4", "1a5"]


@given(WEIGHTS, st.integers(0, 100))
def test_any_number_of_nodes_is_spread_evenly(weights, count):
    order = spread(weights)
    reached = Counter(order[index % len(order)] for index in range(count))
    for zone, weight in weights.items():
        assert abs(reached[zone] - count * weight / sum(weights.values())) < len(weights)


@given(WEIGHTS)
def test_a_whole_turn_of_zones_has_each_as_often_as_its_weight(weights):
    order = spread(weights)
    turns = sum(weights.values()) // len(order)
    assert {zone: number * turns for zone, number in Counter(order).items()} == weights


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("us-gov-west-1b", "us-gov-west-1"),
        ("europe-west4-c", "europe-west4"),
        ("ap-southeast-2a", "ap-southeast-2"),
        ("zone-a", ""),
        ("rack1", ""),
        ("", ""),
    ],
)
def test_the_region_is_known_from_zones_of_the_well_known_form(zone, region):
    assert region_of(zone) == region


def test_labels_say_fleet_group_zone_and_region():
    (node,) = of_one_group(count=1, zones={"us-east-1a": 1})
    assert node.config.registration.labels == {
        "fake-kubelet.dev/fleet": "lab",
        "fake-kubelet.dev/group": "gpu",
        "topology.kubernetes.io/zone": "us-east-1a",
        "topology.kubernetes.io/region": "us-east-1",
    }


def test_a_region_that_is_set_stays_and_the_labels_of_the_fleet_win():
    labels = {"topology.kubernetes.io/region": "mars", "fake-kubelet.dev/fleet": "other", "pool": "gpu"}
    (node,) = of_one_group(count=1, zones={"us-east-1a": 1}, models=(copied("a", labels=labels),))
    assert node.config.registration.labels == {
        "topology.kubernetes.io/region": "mars",
        "topology.kubernetes.io/zone": "us-east-1a",
        "fake-kubelet.dev/fleet": "lab",
        "fake-kubelet.dev/group": "gpu",
        "pool": "gpu",
    }


def test_a_template_has_the_zone_of_the_model_where_the_group_has_none():
    models = (copied("a", labels={"topology.kubernetes.io/zone": "z1"}), copied("b"))
    nodes = of_one_group(count=2, models=models, template=NameTemplate.parse("{zone}x{index}"))
    assert [plan.name for plan in nodes] == ["z1x0", "x1"]


# --- machines


def test_every_node_has_ids_and_an_address_of_its_own():
    nodes = list(plans(Fleet(groups=(Group(count=300), Group(name="cpu", count=300)))))
    for value in ("machine_id", "system_uuid", "boot_id", "network"):
        assert len({getattr(plan.machine, value) for plan in nodes}) == 600


def test_ids_have_the_form_of_a_machines_own():
    machine = of_one_group(count=1)[0].machine
    assert len(machine.machine_id) == 32
    assert [len(part) for part in machine.system_uuid.split("-")] == [8, 4, 4, 4, 12]
    assert machine.network.interfaces[0].addresses == (ip_address("10.0.0.1"),)


def test_nodes_of_fleets_with_different_names_are_different_machines():
    one, other = (next(plans(Fleet(name=name))).machine.machine_id for name in ("one", "other"))
    assert one != other


def test_an_address_that_is_set_is_that_of_all_nodes():
    model = NodeModel(config=NodeConfig(node_ips=(ip_address("192.0.2.7"),)), machine=MACHINE)
    nodes = of_one_group(models=(model,))
    assert {plan.machine.network.interfaces[0].addresses for plan in nodes} == {(ip_address("192.0.2.7"),)}


def test_a_node_is_reached_at_the_address_of_its_process_unless_it_has_one_of_its_own():
    process, own = ip_address("198.51.100.1"), ip_address("192.0.2.7")
    for node_ips, address in (((), process), ((own,), own)):
        (plan,) = of_one_group(count=1, models=(NodeModel(config=NodeConfig(node_ips=node_ips), machine=MACHINE),))
        placed = reached_at(plan, process, 10250, is_shared=True)
        assert placed.machine.network.interfaces[0].addresses == (address,)
        assert (placed.config.kubelet_port, placed.config.shares_port) == (10250, True)
        assert (placed.name, placed.startup) == (plan.name, plan.startup)


def test_the_first_copy_of_a_node_has_its_ids_and_no_other():
    model = copied("a", provider_id="aws:///i-1", machine_id="abc")
    first, second = of_one_group(count=2, models=(model,), template=None)
    assert (first.machine.machine_id, first.config.registration.provider_id) == ("abc", "aws:///i-1")
    assert second.machine.machine_id not in {"", "abc"}
    assert second.config.registration.provider_id == ""


def test_copies_under_other_names_have_ids_of_their_own():
    """Two groups may copy the same nodes."""
    models = (copied("a", machine_id="abc"),)
    groups = (Group(count=1, models=models), Group(name="b", count=1, models=models))
    machines = [plan.machine.machine_id for plan in plans(Fleet(groups=groups))]
    assert "abc" not in machines
    assert len(set(machines)) == 2


# --- start


def test_without_a_rule_nodes_start_at_once():
    assert {plan.startup for plan in of_one_group()} == {fleet.Startup()}


def test_the_jitter_is_added_to_the_delay():
    rule = StartupRule(delay_seconds=45.0, jitter_seconds=30.0)
    delays = [plan.startup.delay_seconds for plan in of_one_group(count=200, startup=rule)]
    assert min(delays) >= 45.0
    assert max(delays) < 75.0
    assert len(set(delays)) == 200
    assert 55.0 < sum(delays) / 200 < 65.0


@given(never=st.integers(0, 50), late=st.integers(0, 50), seed=st.integers(0, 99))
def test_of_a_hundred_nodes_as_many_fail_as_the_percentages_say(never, late, seed):
    rule = StartupRule(never_register_percent=never, never_ready_percent=late)
    starts = [plan.startup for plan in plans(Fleet(seed=seed, groups=(Group(count=100, startup=rule),)))]
    assert sum(not start.registers for start in starts) == never
    assert sum(not start.becomes_ready for start in starts) == late
    assert all(start.registers or start.becomes_ready for start in starts)


def test_half_a_percent_is_one_of_two_hundred_nodes_in_the_mean():
    rule = StartupRule(never_ready_percent=0.5)
    nodes = of_one_group(count=20_000, startup=rule)
    assert 70 < sum(not plan.startup.becomes_ready for plan in nodes) < 130


def test_another_seed_draws_others():
    rule = StartupRule(jitter_seconds=30.0, never_ready_percent=10.0)
    one, other = (list(plans(Fleet(seed=seed, groups=(Group(startup=rule),)))) for seed in (1, 2))
    assert [plan.startup for plan in one] != [plan.startup for plan in other]


# --- the same nodes again


GROUPS = st.builds(
    partial(Group, startup=StartupRule(jitter_seconds=9.0, never_register_percent=20.0)),
    count=st.integers(0, 40),
    zones=WEIGHTS | st.just({}),
    models=st.just((MODEL,)) | st.just((copied("a", machine_id="1"), copied("b"))),
)


@given(GROUPS, st.integers(0, 40))
def test_a_group_that_grows_keeps_its_first_nodes(group, more):
    few, many = Fleet(groups=(group,)), Fleet(groups=(replace(group, count=group.count + more),))
    assert list(plans(many))[: group.count] == list(plans(few)) == list(plans(few))


def test_a_group_that_grows_changes_no_node_of_another():
    one = Fleet(groups=(Group(name="a"), Group(name="b")))
    assert list(plans(scaled(one, {"a": 9})))[9:] == list(plans(one))[3:]


# --- difference


@given(GROUPS, GROUPS)
def test_the_difference_makes_the_wanted_nodes_of_those_that_run(before, after):
    running, wanted = list(plans(Fleet(groups=(before,)))), list(plans(Fleet(groups=(after,))))
    change = difference(running, wanted)
    nodes = {plan.name: plan for plan in running}
    for plan in change.removed:
        del nodes[plan.name]
    for plan in change.changed:
        assert plan.name in nodes
    for plan in change.added:
        assert plan.name not in nodes
    nodes |= {plan.name: plan for plan in (*change.changed, *change.added)}
    assert {name: (plan.config, plan.machine) for name, plan in nodes.items()} == {
        plan.name: (plan.config, plan.machine) for plan in wanted
    }


def test_nodes_that_stay_as_they_are_are_not_in_the_difference():
    assert difference(plans(Fleet()), plans(Fleet())) == fleet.Difference((), (), ())


def test_a_new_delay_of_the_start_changes_no_node_that_runs():
    late = Fleet(groups=(Group(startup=StartupRule(delay_seconds=60.0)),))
    assert difference(plans(Fleet()), plans(late)).changed == ()


def test_a_new_label_changes_all_nodes_of_the_group():
    labelled = Fleet(groups=(Group(models=(copied("a", labels={"pool": "gpu"}),)),))
    assert [plan.name for plan in difference(plans(Fleet()), plans(labelled)).changed] == ["gpu-0", "gpu-1", "gpu-2"]


# --- scale


def test_a_group_is_scaled_by_its_name():
    assert [group.count for group in scaled(Fleet(), {"gpu": 500}).groups] == [500]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ({"gpus": 5}, 'fleet lab has no group "gpus"; its groups are gpu'),
        ({"gpu": -1}, "group gpu: -1 is not from 0 to 65536"),
    ],
)
def test_what_cannot_be_scaled_is_refused(counts, message):
    with pytest.raises(ConfigError, match=message):
        scaled(Fleet(), counts)
