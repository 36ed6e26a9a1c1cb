from agent.core.nodeinfo import daemon_endpoints, declared_features, node_info
from tests.fakes import facts, host_snapshot
from tests.settings import Config


def test_the_node_is_the_machine_and_the_kubelet_that_is_reproduced():
    config = Config(node_name="n1", container_runtime_version="fake://1")
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
    assert declared_features(facts(config=Config(node_name="n1", declared_features=("A", "B")))) == {
        "declaredFeatures": ["A", "B"]
    }


def test_without_features_what_the_node_shows_is_left_alone():
    assert declared_features(facts()) == {}
