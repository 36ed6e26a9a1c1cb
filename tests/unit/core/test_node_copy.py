import pytest

from agent.core.labels import Taint
from agent.core.node import new_node
from agent.core.node_copy import copied_node, merged_taints
from agent.core.quantity import Quantity
from tests.fakes import facts
from tests.settings import NodeConfig, Registration, Resources

INFO = {
    "machineID": "ec2a",
    "systemUUID": "ec2b",
    "bootID": "ec2c",
    "kernelVersion": "6.1.134-150.224.amzn2023.aarch64",
    "osImage": "Amazon Linux 2023.7.20250428",
    "containerRuntimeVersion": "containerd://1.7.27",
    "kubeletVersion": "v1.31.7-eks-473151a",
    "kubeProxyVersion": "v1.31.7-eks-473151a",
    "operatingSystem": "linux",
    "architecture": "arm64",
}
CAPACITY = {
    "cpu": "8",
    "ephemeral-storage": "83873772Ki",
    "hugepages-2Mi": "0",
    "memory": "32386548Ki",
    "pods": "58",
    "vpc.amazonaws.com/pod-eni": "54",
}
ALLOCATABLE = {**CAPACITY, "cpu": "7910m", "ephemeral-storage": "76224326324", "memory": "31369716Ki"}
LABELS = {
    "kubernetes.io/arch": "arm64",
    "kubernetes.io/hostname": "ip-10-0-1-5",
    "node-role.kubernetes.io/worker": "",
    "topology.kubernetes.io/region": "eu-west-1",
    "topology.kubernetes.io/zone": "eu-west-1c",
}
SOURCE = {
    "metadata": {"name": "ip-10-0-1-5.ec2.internal", "labels": LABELS},
    "spec": {
        "providerID": "aws:///eu-west-1c/i-0123",
        "taints": [
            {"key": "dedicated", "value": "db", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ],
    },
    "status": {"capacity": CAPACITY, "allocatable": ALLOCATABLE, "nodeInfo": INFO, "declaredFeatures": ["A"]},
}


def copied(source=SOURCE, base=None, **options):
    options = {"keep_provider_id": False, "keep_zone": True} | options
    return copied_node(source, base or NodeConfig(), **options)


def node(source=SOURCE, base=None, **options):
    """The Node that a copy registers."""
    model = copied(source, base, **options)
    return new_node(facts(config=model.config, host=model.machine))[0]


def test_capacity_and_allocatable_are_those_of_the_source_to_the_byte():
    status = node()["status"]
    assert (status["capacity"], status["allocatable"]) == (CAPACITY, ALLOCATABLE)


def test_node_info_is_that_of_the_source():
    assert node()["status"]["nodeInfo"] == INFO


def test_a_copy_of_another_system_says_so():
    windows = {**SOURCE, "status": {**SOURCE["status"], "nodeInfo": {**INFO, "operatingSystem": "windows"}}}
    assert node(windows)["status"]["nodeInfo"]["operatingSystem"] == "windows"


def test_swap_is_that_of_the_source():
    status = {**SOURCE["status"], "nodeInfo": {**INFO, "swap": {"capacity": 4096}}}
    assert node({**SOURCE, "status": status})["status"]["nodeInfo"]["swap"] == {"capacity": 4096}


def test_labels_are_those_of_the_source_but_for_the_hostname():
    labels = node()["metadata"]["labels"]
    assert labels.pop("kubernetes.io/hostname") == "ip-10-0-1-5.ec2.internal"
    assert {key: labels[key] for key in LABELS if key != "kubernetes.io/hostname"} == {
        key: value for key, value in LABELS.items() if key != "kubernetes.io/hostname"
    }


def test_zone_and_region_can_be_left_out_for_others():
    labels = node(keep_zone=False)["metadata"]["labels"]
    assert not [key for key in labels if key.startswith("topology.")]


def test_taints_of_controllers_about_the_state_of_the_source_are_left_out():
    assert node()["spec"]["taints"] == [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]


@pytest.mark.parametrize(("keeps", "provider_id"), [(True, "aws:///eu-west-1c/i-0123"), (False, None)])
def test_the_provider_id_is_kept_only_if_asked(keeps, provider_id):
    assert node(keep_provider_id=keeps)["spec"].get("providerID") == provider_id


def test_addresses_are_not_copied():
    assert copied().config.node_ips == ()


def test_resources_labels_and_taints_of_the_settings_win():
    base = NodeConfig(
        registration=Registration(
            labels={"node-role.kubernetes.io/worker": "yes"}, taints=(Taint("dedicated", "web", "NoSchedule"),)
        ),
        resources=Resources(
            overrides={"cpu": Quantity.parse("4")}, extended={"nvidia.com/gpu": Quantity.parse("8")}, max_pods=5
        ),
    )
    made = node(base=base)
    for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
        assert (amounts["cpu"], amounts["nvidia.com/gpu"], amounts["pods"]) == ("4", "8", "58")
    assert made["metadata"]["labels"]["node-role.kubernetes.io/worker"] == "yes"
    assert made["spec"]["taints"] == [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]


def test_a_source_without_a_status_is_a_small_machine():
    made = node({"metadata": {"name": "a"}})["status"]
    assert made["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert made["capacity"]["cpu"] == "4"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": {"capacity": {"cpu": "many"}}}, 'cpu: "many": quantities must match'),
        ({"status": {"capacity": {"cpu": "-1"}}}, "cpu: -1 is negative"),
        ({"metadata": {"name": "a", "labels": {"a": "-"}}}, "invalid node labels"),
        ({"metadata": {"name": "A"}}, 'invalid node name "A"'),
    ],
)
def test_a_source_that_no_node_can_be_like_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        copied({**SOURCE, **change})


def test_of_two_taints_with_the_same_key_and_effect_the_second_stays():
    one, other, third = Taint("a", "1", "NoSchedule"), Taint("a", "2", "NoSchedule"), Taint("a", "", "NoExecute")
    assert merged_taints((one, third), (other,)) == (other, third)


def test_features_are_those_that_the_source_declares():
    assert copied().config.declared_features == ("A",)
