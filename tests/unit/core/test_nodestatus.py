from datetime import timedelta
from ipaddress import ip_address

import pytest

from agent.core.errors import ConfigError
from agent.core.model import DefaultRoute, Network
from agent.core.nodestatus import (
    FieldError,
    addresses,
    conditions,
    daemon_endpoints,
    declared_features,
    find_condition,
    node_info,
    parse_node_ips,
)
from tests.fakes import START, facts, host_snapshot, interface
from tests.settings import NodeConfig, Registration

BEGAN = "2026-01-02T03:04:05Z"
LATER = "2026-01-02T03:05:05Z"


def after_a_minute(observed, **changes):
    return conditions(facts(observed=observed, now=START + timedelta(minutes=1), **changes))


def test_a_new_node_has_four_conditions_and_ready_is_last():
    told = conditions(facts())["conditions"]
    assert [(c["type"], c["status"], c["reason"]) for c in told] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    assert {c["lastTransitionTime"] for c in told} == {BEGAN}


@pytest.mark.parametrize(
    ("pressure", "words"),
    [
        # kubelet v1.36: nodestatus/setters.go
        (
            set(),
            [
                "kubelet has sufficient memory available",
                "kubelet has no disk pressure",
                "kubelet has sufficient PID available",
                "kubelet is posting ready status",
            ],
        ),
        (
            {"MemoryPressure", "DiskPressure", "PIDPressure"},
            [
                "kubelet has insufficient memory available",
                "kubelet has disk pressure",
                "kubelet has insufficient PID available",
                "kubelet is posting ready status",
            ],
        ),
    ],
)
def test_the_messages_are_kubelets(pressure, words):
    told = conditions(facts(pressure=frozenset(pressure)))["conditions"]
    assert [condition["message"] for condition in told] == words


def test_a_node_without_a_capacity_that_pods_need_is_not_ready():
    ready = find_condition(conditions(facts(host=host_snapshot(nodefs=None))), "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "KubeletNotReady")
    assert ready["message"] == "missing node capacity for resources: ephemeral-storage"


def test_a_heartbeat_moves_the_heartbeat_time_and_nothing_else():
    first = conditions(facts())
    again = after_a_minute(first)
    assert [{**c, "lastHeartbeatTime": BEGAN} for c in again["conditions"]] == first["conditions"]
    assert {c["lastHeartbeatTime"] for c in again["conditions"]} == {LATER}


def test_a_flip_has_a_new_reason_and_transition_time():
    flipped = find_condition(
        after_a_minute(conditions(facts()), pressure=frozenset({"MemoryPressure"})), "MemoryPressure"
    )
    assert flipped == {
        "type": "MemoryPressure",
        "status": "True",
        "lastHeartbeatTime": LATER,
        "lastTransitionTime": LATER,
        "reason": "KubeletHasInsufficientMemory",
        "message": "kubelet has insufficient memory available",
    }


def test_a_node_that_was_given_up_comes_back_with_a_new_transition_time():
    gone = {
        "conditions": [
            {"type": "Ready", "status": "Unknown", "lastTransitionTime": BEGAN, "reason": "NodeStatusUnknown"}
        ]
    }
    ready = find_condition(after_a_minute(gone), "Ready")
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", LATER)


def test_several_problems_are_listed_once_each_and_one_stands_alone():
    assert find_condition(conditions(facts(problems=("a", "b", "a"))), "Ready")["message"] == "[a, b]"
    assert find_condition(conditions(facts(problems=("a",))), "Ready")["message"] == "a"


def test_the_message_of_not_ready_may_change_without_a_transition():
    first = conditions(facts(problems=("a",)))
    ready = find_condition(after_a_minute(first, problems=("b",)), "Ready")
    assert (ready["message"], ready["lastTransitionTime"]) == ("b", BEGAN)


def test_conditions_of_others_keep_their_place_and_content():
    foreign = {"type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated"}
    told = after_a_minute({"conditions": [foreign, *conditions(facts())["conditions"]]})["conditions"]
    assert told[0] == foreign
    assert [c["type"] for c in told] == ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]


ETH0 = interface("eth0", "192.0.2.10", "2001:db8::10")
ROUTE4, ROUTE6 = DefaultRoute(interface="eth0", version=4), DefaultRoute(interface="eth0", version=6)


def network(*resolved, interfaces=(ETH0,), routes=(ROUTE4, ROUTE6)):
    return Network(interfaces=interfaces, default_routes=routes, node_name_addresses=tuple(map(ip_address, resolved)))


def told(node_ip="", name="n1", **given):
    config = NodeConfig(node_name=name, node_ips=parse_node_ips(node_ip))
    answer = addresses(facts(config=config, host=host_snapshot(network=network(**given) if given else network())))
    return [(entry["type"], entry["address"]) for entry in answer["addresses"]]


@pytest.mark.parametrize(
    ("node_ip", "internal"),
    [
        ("192.0.2.10", ["192.0.2.10"]),
        ("192.0.2.10,2001:db8::10", ["192.0.2.10", "2001:db8::10"]),
        ("", ["192.0.2.10"]),
        ("0.0.0.0", ["192.0.2.10"]),
        ("::", ["2001:db8::10"]),
        ("nonsense", ["192.0.2.10"]),
    ],
)
def test_internal_ips_come_first_and_the_hostname_last(node_ip, internal):
    assert told(node_ip) == [*(("InternalIP", ip) for ip in internal), ("Hostname", "n1")]


def test_a_node_that_others_have_no_route_to_tells_an_external_ip():
    config = NodeConfig(node_name="n1", node_ip_type="ExternalIP")
    answer = addresses(facts(config=config, host=host_snapshot(network=network())))
    assert [entry["type"] for entry in answer["addresses"]] == ["ExternalIP", "Hostname"]
    with pytest.raises(ConfigError, match="--node-ip-type must be InternalIP or ExternalIP"):
        NodeConfig(node_name="n1", node_ip_type="Hostname")


def test_a_name_that_is_an_address_is_the_address():
    assert told(name="198.51.100.7")[0] == ("InternalIP", "198.51.100.7")


def test_what_the_resolver_says_beats_the_default_route():
    second = interface("eth1", "192.0.2.20")
    snapshot = host_snapshot(network=network("192.0.2.20", interfaces=(ETH0, second)))
    assert addresses(facts(host=snapshot))["addresses"][0]["address"] == "192.0.2.20"


@pytest.mark.parametrize(
    "resolved", ["127.0.1.1", "203.0.113.9", "169.254.1.1"], ids=["loopback", "not ours", "link-local"]
)
def test_an_unusable_answer_of_the_resolver_is_passed_over(resolved):
    snapshot = host_snapshot(network=network(resolved))
    assert addresses(facts(host=snapshot))["addresses"][0]["address"] == "192.0.2.10"


def test_a_default_route_through_an_interface_that_is_down_does_not_count():
    down = interface("eth0", "192.0.2.10", up=False)
    with pytest.raises(FieldError, match="can't get ip address of node n1"):
        told(interfaces=(down,))


def test_a_link_local_address_is_passed_over():
    local = interface("eth0", "169.254.7.7", "192.0.2.10")
    assert told(interfaces=(local,))[0] == ("InternalIP", "192.0.2.10")


def test_an_address_of_loopback_stands_in_for_an_unnumbered_interface():
    unnumbered, loopback = interface("eth0"), interface("lo", "127.0.0.1", "192.0.2.99")
    assert told(interfaces=(unnumbered, loopback))[0] == ("InternalIP", "192.0.2.99")


@pytest.mark.parametrize("node_ip", ["203.0.113.1", "127.0.0.1", "224.0.0.1", "169.254.0.1"])
def test_a_given_address_must_be_one_of_this_host(node_ip):
    with pytest.raises(FieldError, match="failed to validate nodeIP"):
        told(node_ip)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("192.0.2.1,192.0.2.2", "must contain either a single IP or a dual-stack pair"),
        ("192.0.2.1,2001:db8::1,192.0.2.3", "must contain either a single IP or a dual-stack pair"),
        ("0.0.0.0,2001:db8::1", "dual-stack node IP cannot include"),
    ],
)
def test_node_ips_that_kubelet_refuses(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_node_ips(text)


def external(node_ip="", observed=None):
    config = NodeConfig(
        node_name="n1",
        node_ips=parse_node_ips(node_ip),
        registration=Registration(external_cloud_provider=True),
    )
    snapshot = host_snapshot(network=network())
    return addresses(facts(config=config, host=snapshot, observed={"addresses": observed} if observed else {}))


def test_with_an_external_cloud_only_the_hostname_is_told_until_an_address_is_given():
    hostname = {"type": "Hostname", "address": "n1"}
    internal = {"type": "InternalIP", "address": "192.0.2.10"}
    assert external() == {"addresses": [hostname]}
    assert external("192.0.2.10") == {"addresses": [internal, hostname]}
    assert external("0.0.0.0") == {"addresses": [internal, hostname]}


def test_addresses_of_a_cloud_controller_are_left_alone():
    assert external("192.0.2.10", observed=[{"type": "ExternalIP", "address": "203.0.113.5"}]) == {}


def test_the_node_is_the_machine_and_the_kubelet_that_is_reproduced():
    config = NodeConfig(node_name="n1", container_runtime_version="fake://1")
    assert node_info(facts(config=config, host=host_snapshot(architecture="arm64")))["nodeInfo"] == {
        "machineID": "machine",
        "systemUUID": "system",
        "bootID": "boot-1",
        "kernelVersion": "6.1.0",
        "osImage": "Debian",
        "containerRuntimeVersion": "fake://1",
        "kubeletVersion": "v1.36.3",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "arm64",
    }


def test_swap_is_told_where_there_is_some():
    assert node_info(facts(host=host_snapshot(swap_bytes=4096)))["nodeInfo"]["swap"] == {"capacity": 4096}


def test_the_endpoint_has_a_capital_letter_in_the_api():
    assert daemon_endpoints(facts()) == {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}


def test_the_features_of_the_settings_are_declared():
    assert declared_features(facts(config=NodeConfig(node_name="n1", declared_features=("A", "B")))) == {
        "declaredFeatures": ["A", "B"]
    }


def test_without_features_what_the_node_shows_is_left_alone():
    assert declared_features(facts()) == {}
