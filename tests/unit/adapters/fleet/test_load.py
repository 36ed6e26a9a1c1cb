from collections import Counter

import pytest

from agent.adapters.fleet import FleetOptions, InvalidFleet, fleet_from_flags, load_fleet
from agent.core.capacity import own_allocatable, own_capacity
from agent.core.errors import ConfigError
from agent.core.fleet import Fleet, plans
from agent.core.quantity import format_amounts

ISSUE = """\
groups:
- name: gpu
  count: 200
  nameTemplate: "gpu-{zone}-{index:04}"
  instanceType: p5.48xlarge          # catalogue: a JSON file in Karpenter's instance_types.json form
  zones: {us-east-1a: 2, us-east-1b: 1}   # weights
  config: kubelet-gpu.yaml           # a KubeletConfiguration: allocatable by kubelet's own arithmetic
  extendedResources: {nvidia.com/gpu: "8"}
  labels: {pool: gpu}
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  startup: {delay: 45s, jitter: 30s, neverRegister: 1%, neverReady: 1%}
- name: prod-copy
  like: prod-nodes.yaml              # kubectl get nodes -o yaml of any cluster
"""


def of_file(name="fleet.yaml", **flags):
    return load_fleet(FleetOptions(filename=name), {name.replace("_", "-"): value for name, value in flags.items()})


def nodes(name="fleet.yaml", **flags):
    return list(plans(of_file(name, **flags)))


def capacity(plan):
    return format_amounts(own_capacity(plan.config, plan.machine))


def allocatable(plan):
    return format_amounts(own_allocatable(plan.config, plan.machine))


def labels(plan):
    return plan.config.registration.labels


# --- what a file describes


def test_a_file_with_a_group_of_an_instance_type_and_a_copy_of_a_cluster(fleet_file, nodes_file, write):
    fleet_file(ISSUE)
    nodes_file()
    write(
        "kubelet-gpu.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "kubeReserved: {cpu: 500m, memory: 4Gi}\nevictionHard: {memory.available: 500Mi, nodefs.available: 10%}\n",
    )
    *gpus, first, second = nodes()
    assert (gpus[0].name, gpus[-1].name) == ("gpu-us-east-1a-0000", "gpu-us-east-1b-0199")
    assert Counter(labels(plan)["topology.kubernetes.io/zone"] for plan in gpus) == {
        "us-east-1a": 133,
        "us-east-1b": 67,
    }
    assert labels(gpus[0]) == {
        "fake-kubelet.dev/fleet": "fleet",
        "fake-kubelet.dev/group": "gpu",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "pool": "gpu",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.kubernetes.io/zone": "us-east-1a",
    }
    assert [taint.as_object() for taint in gpus[0].config.registration.taints] == [
        {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    ]
    assert capacity(gpus[0]) == {
        "cpu": "192",
        "memory": "2Ti",
        "ephemeral-storage": "100Gi",
        "pods": "100",
        "nvidia.com/gpu": "8",
    }
    assert (allocatable(gpus[0])["cpu"], allocatable(gpus[0])["memory"]) == ("191500m", "2092556Mi")
    assert sum(not plan.startup.registers for plan in gpus) == sum(not plan.startup.becomes_ready for plan in gpus) == 2
    assert all(45.0 <= plan.startup.delay_seconds < 75.0 for plan in gpus)
    assert (first.name, second.name) == ("ip-10-0-1-5.ec2.internal", "ip-10-0-1-6.ec2.internal")
    assert allocatable(first) == {"cpu": "7910m", "memory": "31369716Ki", "pods": "58"}


def test_the_names_of_a_fleet_and_of_its_seed_stand_in_the_file(fleet_file):
    fleet_file("metadata: {name: lab}\nseed: 7\ngroups: [{name: a, count: 1}]\n")
    fleet = of_file()
    assert (fleet.name, fleet.seed) == ("lab", 7)
    fleet = load_fleet(FleetOptions(filename="fleet.yaml", name="other", seed=8), {})
    assert (fleet.name, fleet.seed) == ("other", 8)


def test_a_group_needs_no_more_than_a_name_and_a_count(fleet_file):
    fleet_file("groups:\n- {name: a, count: 2, labels: null, startup: null}\n")
    assert [plan.name for plan in nodes()] == ["a-0", "a-1"]
    assert capacity(nodes()[0]) == {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def test_a_file_may_be_json_and_come_from_standard_input():
    text = '{"apiVersion": "fake-kubelet.dev/v1alpha1", "kind": "Fleet", "groups": [{"name": "a", "count": 1}]}'
    assert load_fleet(FleetOptions(filename="-"), {}, read_stdin=lambda: text).count == 1


def test_files_are_found_beside_the_file_that_names_them(folder, write):
    (folder / "lab").mkdir()
    write("lab/kubelet.yaml", "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 7\n")
    write(
        "lab/fleet.yaml",
        "apiVersion: fake-kubelet.dev/v1alpha1\nkind: Fleet\ngroups: [{name: a, count: 1, config: kubelet.yaml}]\n",
    )
    assert capacity(nodes("lab/fleet.yaml")[0])["pods"] == "7"


def test_both_documents_of_a_configuration_count(fleet_file, kubelet_file):
    kubelet_file(
        "nodeLeaseDurationSeconds: 20\n---\napiVersion: fake-kubelet.dev/v1alpha1\nkind: FakeKubeletConfiguration\n"
        "pods: ignore\nextendedResources: {example.com/a: '1'}\n"
    )
    fleet_file("groups: [{name: a, count: 1, config: kubelet.yaml, extendedResources: {example.com/b: 2}}]\n")
    (plan,) = nodes()
    assert (plan.config.heartbeat.lease_duration_seconds, plan.config.pods.mode) == (20, "ignore")
    assert (capacity(plan)["example.com/a"], capacity(plan)["example.com/b"]) == ("1", "2")


def test_kubelets_flags_hold_for_all_groups_and_win_over_files(fleet_file, kubelet_file):
    kubelet_file("maxPods: 7\nnodeLeaseDurationSeconds: 20\n")
    fleet_file("groups:\n- {name: a, count: 1, config: kubelet.yaml}\n- {name: b, count: 1, labels: {l: b}}\n")
    first, second = nodes(max_pods=9, node_labels={"l": "flag", "m": "flag"})
    assert (capacity(first)["pods"], capacity(second)["pods"]) == ("9", "9")
    assert first.config.heartbeat.lease_duration_seconds == 20
    assert (labels(first)["l"], labels(second)["l"], labels(second)["m"]) == ("flag", "b", "flag")


# --- instance types


def test_max_pods_that_are_set_win_over_those_of_the_instance_type(fleet_file, kubelet_file):
    kubelet_file("maxPods: 250\n")
    fleet_file(
        "groups:\n- {name: a, count: 1, instanceType: m5.large}\n"
        "- {name: b, count: 1, instanceType: m5.large, config: kubelet.yaml}\n"
    )
    assert [capacity(plan)["pods"] for plan in nodes()] == ["29", "250"]


def test_devices_of_an_instance_type_are_extended_resources_that_the_group_may_change(fleet_file):
    fleet_file(
        "groups:\n- {name: a, count: 1, instanceType: g5.xlarge}\n"
        "- {name: b, count: 1, instanceType: g5.xlarge, extendedResources: {nvidia.com/gpu: 4}}\n"
    )
    assert [allocatable(plan)["nvidia.com/gpu"] for plan in nodes()] == ["1", "4"]


def test_an_instance_type_says_the_architecture_too(fleet_file):
    fleet_file("groups: [{name: a, count: 1, instanceType: m7g.2xlarge}]\n")
    assert nodes()[0].machine.architecture == "arm64"


CATALOGUE = '[{"name": "tiny", "architecture": "amd64", "resources": {"cpu": "1", "memory": "1Gi"}}]'


def test_a_catalogue_of_the_users_replaces_ours(fleet_file, write):
    write("types.json", CATALOGUE)
    fleet_file("catalogue: types.json\ngroups: [{name: a, count: 1, instanceType: tiny}]\n")
    assert capacity(nodes()[0])["cpu"] == "1"


def test_a_catalogue_on_the_command_line_wins(fleet_file, write):
    write("types.json", CATALOGUE)
    fleet_file("catalogue: missing.json\ngroups: [{name: a, count: 1, instanceType: tiny}]\n")
    fleet = load_fleet(FleetOptions(filename="fleet.yaml", catalogue="types.json"), {})
    assert capacity(next(plans(fleet)))["cpu"] == "1"


# --- copies


def test_copies_go_on_from_the_first_where_there_are_more_than_nodes(fleet_file, nodes_file):
    nodes_file()
    fleet_file("groups: [{name: a, count: 3, like: prod-nodes.yaml}]\n")
    assert [plan.name for plan in nodes()] == [
        "ip-10-0-1-5.ec2.internal",
        "ip-10-0-1-6.ec2.internal",
        "ip-10-0-1-5.ec2.internal-1",
    ]
    assert len({plan.machine.machine_id for plan in nodes()}) == 3


def test_copies_can_have_other_names_and_zones(fleet_file, nodes_file):
    nodes_file()
    fleet_file('groups: [{name: a, like: prod-nodes.yaml, nameTemplate: "{zone}-{index}", zones: {mars-1a: 1}}]\n')
    assert [plan.name for plan in nodes()] == ["mars-1a-0", "mars-1a-1"]
    assert labels(nodes()[0])["topology.kubernetes.io/zone"] == "mars-1a"


def test_copies_without_zones_are_named_by_their_own(fleet_file, nodes_file):
    nodes_file()
    fleet_file('groups: [{name: a, like: prod-nodes.yaml, nameTemplate: "{zone}-{index}"}]\n')
    assert [plan.name for plan in nodes()] == ["eu-west-1c-0", "eu-west-1a-1"]


@pytest.mark.parametrize(("field", "expected"), [("", ""), ("keepProviderIDs: true, ", "aws:///eu-west-1c/i-0123")])
def test_provider_ids_are_kept_only_if_asked(fleet_file, nodes_file, field, expected):
    nodes_file()
    fleet_file(f"groups: [{{name: a, {field}like: prod-nodes.yaml}}]\n")
    assert nodes()[0].config.registration.provider_id == expected


# --- flags


def test_flags_alone_make_one_group():
    flags = {"count": 1000, "name-template": "hollow-{index:05}", "capacity": {"cpu": "32", "memory": "256Gi"}}
    fleet = fleet_from_flags({**flags, "kube-reserved": {"cpu": "1"}, "kubeconfig": "x"})
    first = next(plans(fleet))
    assert (fleet.name, fleet.count, first.name, first.group) == ("fleet", 1000, "hollow-00000", "node")
    assert (capacity(first)["cpu"], capacity(first)["memory"], allocatable(first)["cpu"]) == ("32", "256Gi", "31")
    assert (first.machine.cpu_millicores, first.machine.memory_bytes) == (32_000, 2**38)


def test_a_cluster_is_copied_in_one_line(nodes_file, folder):
    text = (folder / nodes_file()).read_text()
    fleet = fleet_from_flags({"like": "-", "keep-provider-ids": True}, read_stdin=lambda: text)
    assert [plan.config.registration.provider_id for plan in plans(fleet)] == ["aws:///eu-west-1c/i-0123", ""]


def test_a_fleet_that_adopts_needs_no_nodes_of_its_own(folder):
    assert fleet_from_flags({"adopt": "a=b", "name": "lab"}) == Fleet(name="lab", groups=())
    assert fleet_from_flags({"adopt": "a=b", "count": 2}).count == 2


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        ({}, "a fleet needs --count N, --like FILE, -f FILE or --adopt LABEL=VALUE"),
        ({"filename": "f", "count": 1}, "-f and --count do not go together: the file describes its groups"),
        ({"filename": "f", "like": "n"}, "-f and --like do not go together: the file describes its groups"),
        ({"count": 1, "catalogue": "c"}, "--catalogue goes with -f: only groups in a file name their instance type"),
        ({"count": -1}, "--count: -1 is not from 0 to 65536"),
        ({"count": 2, "name-template": "n"}, '--name-template: two nodes would have the name "n"'),
        ({"count": 2, "name-template": "{zone}{index}"}, '--name-template: "{zone}{index}": {zone} needs zones'),
        ({"count": 2, "hostname-override": "n"}, "--hostname-override is for one node"),
        ({"count": 2, "provider-id": "n"}, "--provider-id is for one node"),
        ({"count": 2, "name": "Lab"}, '--name: "Lab" is no name: '),
        ({"count": 2, "config": "missing"}, "--config: cannot read missing: No such file or directory"),
        ({"like": "missing"}, "--like: cannot read missing: No such file or directory"),
        ({"filename": "missing"}, "cannot read missing: No such file or directory"),
        ({"count": 2, "keep-provider-ids": True}, "--keep-provider-ids: is for copies"),
        ({"count": 2, "node-labels": {"kubernetes.io/hostname": "n"}}, "--node-labels: kubernetes.io/hostname is"),
        ({"adopt": "kwok.x-k8s.io/node"}, "--adopt must be LABEL=VALUE"),
        ({"adopt": "a=b", "name-template": "n"}, "--adopt and --name-template need --count or --like, too"),
    ],
)
def test_flags_that_describe_no_fleet_are_refused(folder, flags, error):
    with pytest.raises(ConfigError) as refusal:
        fleet_from_flags(flags)
    assert str(refusal.value).startswith(error)


# --- what is wrong with a file


@pytest.mark.parametrize(
    ("group", "error"),
    [
        ("count: 1, cuont: 2", "groups[1].cuont: unknown field; did you mean count?"),
        ("count: 1, xyzzy: 2", "groups[1].xyzzy: unknown field"),
        ("count: 1, startup: {dely: 3s}", "groups[1].startup.dely: unknown field; did you mean delay?"),
        ("count: 1, taints: [{keyy: a, effect: b}]", "groups[1].taints[0].keyy: unknown field; did you mean key?"),
        ("count: 1, taints: [{effect: NoSchedule}]", "groups[1].taints[0].key: missing"),
        ("count: 1, taints: [{key: a, effect: Never}]", 'groups[1].taints[0].effect: "Never" is none of NoSchedule'),
        ("count: 1, taints: [{key: -, effect: NoSchedule}]", 'groups[1].taints[0].key: "-": name part must consist'),
        ("count: 1, startup: {delay: 3x}", 'groups[1].startup.delay: time: unknown unit "x" in duration "3x"'),
        ("count: 1, startup: {delay: -3s}", "groups[1].startup.delay: -3s is negative"),
        ("count: 1, startup: {jitter: 3}", "groups[1].startup.jitter: expected string, got integer"),
        ("count: 1, startup: {neverReady: 101%}", "groups[1].startup.neverReady: 101% is more than 100%"),
        ("count: 1, startup: {neverReady: -1%}", "groups[1].startup.neverReady: -1% is no percentage such as 1%"),
        ("count: 1, startup: {neverReady: 0.1}", "groups[1].startup.neverReady: 0.1 is no percentage such as 1%"),
        (
            "count: 1, startup: {neverReady: 60%, neverRegister: 60%}",
            "groups[1].startup: neverRegister and neverReady are more than 100% together",
        ),
        ("instanceType: m5.large", "groups[1].count: missing; only a group with like needs none"),
        ('count: "3"', "groups[1].count: expected integer, got string"),
        ("count: 1, instanceType: m5.lagre", 'groups[1].instanceType: "m5.lagre" is not in the catalogue of'),
        ("count: 1, config: no.yaml", "groups[1].config: cannot read no.yaml: No such file or directory"),
        ("count: 1, config: fleet.yaml", "groups[1].config: failed to load kubelet config file"),
        ("count: 1, labels: {a: 1}", "groups[1].labels.a: 1 is no string; write it in quotes"),
        ("count: 1, labels: {-: a}", "groups[1].labels: invalid node labels: '-' - name part must"),
        ("count: 1, labels: {kubernetes.io/hostname: a}", "groups[1].labels: kubernetes.io/hostname is the name of"),
        ("count: 1, zones: {a: b}", "groups[1].zones.a: b is no weight from 0 to 1000"),
        ("count: 1, zones: {a: -1}", "groups[1].zones.a: -1 is no weight from 0 to 1000"),
        ("count: 1, zones: {a: 0}", "groups[1].zones: all weights are 0"),
        ('count: 1, zones: {"a b": 1}', 'groups[1].zones: "a b" is no name of a zone'),
        ("count: 1, extendedResources: {cpu: 1}", 'groups[1].extendedResources: "cpu" is no extended resource'),
        ("count: 1, extendedResources: {a/b: x}", 'groups[1].extendedResources.a/b: "x": quantities must match'),
        ("count: 1, capacity: {cpu: true}", "groups[1].capacity.cpu: expected a quantity such as 8 or 16Gi"),
        ("count: 1, capacity: {hugepages-x: 1}", "groups[1].capacity: quantities must match"),
        ('count: 1, nameTemplate: "{zone}"', 'groups[1].nameTemplate: "{zone}": {zone} needs zones'),
        ('count: 1, nameTemplate: "{name}"', 'groups[1].nameTemplate: "{name}": {name} is no field; there are'),
        ("like: fleet.yaml", "groups[1].like: fleet.yaml: expected a Node, or a list of Nodes, got kind Fleet"),
        ("like: no.yaml", "groups[1].like: cannot read no.yaml: No such file or directory"),
        ("like: a.yaml, instanceType: m5.large", "groups[1].instanceType: does not go together with like"),
        ("count: 1, keepProviderIDs: true", "groups[1].keepProviderIDs: is for copies, which like asks for"),
    ],
)
def test_an_error_names_the_path_of_the_field(fleet_file, group, error):
    fleet_file(f"groups:\n- {{name: good, count: 1}}\n- {{name: bad, {group}}}\n")
    with pytest.raises(InvalidFleet) as refusal:
        of_file()
    assert str(refusal.value).startswith(f"fleet.yaml: {error}")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ("groups: [{name: a, count: 2, nameTemplate: x}]", 'groups[0].nameTemplate: two nodes would have the name "x"'),
        ("groups: [{name: a, count: 1, nameTemplate: X}]", 'groups[0].nameTemplate: "X" is no name of a Node: '),
        ("groups: [{name: a, count: -2}]", "groups[0].count: -2 is not from 0 to 65536"),
        ("groups: [{name: a, count: 1}, {name: a, count: 1}]", 'groups[1].name: there are two groups "a"'),
        ("groups: [{name: A, count: 1}]", 'groups[0].name: "A" is no name: '),
        ("groups: [5]", "groups[0]: expected mapping, got integer"),
        ("groups: []", "groups: there is none"),
        ("groups: {}", "groups: expected list, got mapping"),
        ("grups: []", "grups: unknown field; did you mean groups?"),
        ("metadata: {nam: a}\ngroups: []", "metadata.nam: unknown field; did you mean name?"),
        ("metadata: {name: A}\ngroups: [{name: a, count: 1}]", 'metadata.name: "A" is no name: '),
        ("seed: x\ngroups: []", "seed: expected integer, got string"),
        ("groups: []\ngroups: []", 'line 4: key "groups" already set in map'),
        ("groups: [", "yaml: line 4: "),
        ("groups: []\n---\na: b", "expected one document of kind Fleet, got 2"),
    ],
)
def test_an_error_of_the_whole_file_names_it(fleet_file, fields, error):
    fleet_file(fields + "\n")
    with pytest.raises(ConfigError) as refusal:
        of_file()
    assert str(refusal.value).startswith(f"fleet.yaml: {error}")


def test_a_document_of_another_kind_is_refused(kubelet_file):
    kubelet_file("")
    with pytest.raises(ConfigError, match=r"expected apiVersion fake-kubelet.dev/v1alpha1 and kind Fleet, got apiVer"):
        of_file("kubelet.yaml")


def test_a_configuration_is_decoded_strictly(fleet_file, kubelet_file):
    kubelet_file("maxPod: 5\n")
    fleet_file("groups: [{name: a, count: 1, config: kubelet.yaml}]\n")
    with pytest.raises(InvalidFleet, match=r'kubelet.yaml: unknown field "maxPod"; did you mean maxPods\?'):
        of_file()


def test_a_configuration_that_no_kubelet_starts_with_is_refused_with_its_group(fleet_file, kubelet_file):
    kubelet_file("kubeReserved: {memory: 256MB}\n")
    fleet_file("groups: [{name: a, count: 1, config: kubelet.yaml}]\n")
    with pytest.raises(InvalidFleet, match=r"groups\[0\].config: --kube-reserved value failed to parse"):
        of_file()


def test_a_provider_id_for_all_nodes_is_refused(fleet_file, kubelet_file):
    kubelet_file("providerID: aws:///i-1\n")
    fleet_file("groups: [{name: a, count: 2, config: kubelet.yaml}]\n")
    with pytest.raises(InvalidFleet, match=r"groups\[0\].config: providerID is for one node"):
        of_file()


def test_reservations_beyond_the_capacity_are_refused(fleet_file, kubelet_file):
    kubelet_file("kubeReserved: {cpu: '9'}\n")
    fleet_file("groups: [{name: a, count: 1, config: kubelet.yaml, capacity: {cpu: 8}}]\n")
    with pytest.raises(InvalidFleet, match=r'groups\[0\].config: .*"cpu" has a reservation of 9 but capacity of 8'):
        of_file()


def test_every_group_has_its_own_error(fleet_file):
    fleet_file("groups:\n- {name: a, cuont: 1}\n- {name: b, count: 1}\n- {name: c}\n")
    with pytest.raises(InvalidFleet) as refusal:
        of_file()
    assert refusal.value.errors == [
        "fleet.yaml: groups[0].cuont: unknown field; did you mean count?",
        "fleet.yaml: groups[2].count: missing; only a group with like needs none",
    ]
    assert str(refusal.value).endswith(" (and 1 more; fleet check shows all)")
