import pytest

from agent.core.errors import ConfigError
from agent.core.labels import Taint, check_labels, parse_taints


@pytest.mark.parametrize(
    "key",
    [
        "example.com/role",
        "zone",
        "topology.kubernetes.io/zone",
        "node.kubernetes.io/anything",
        "sub.kubelet.kubernetes.io/x",
        "mykubernetes.io/x",
    ],
)
def test_a_node_may_set(key):
    check_labels({key: "v"})
    with pytest.raises(ConfigError, match="invalid node labels"):
        check_labels({key: "v!"})  # the key passes, so the value is what it complains about


@pytest.mark.parametrize(
    "key", ["node-role.kubernetes.io/worker", "kubernetes.io/x", "a.k8s.io/x", "node-restriction.kubernetes.io/x"]
)
def test_a_node_may_not_set(key):
    with pytest.raises(ConfigError, match=rf"labels specified with --node-labels: \[{key}\]"):
        check_labels({key: ""})


@pytest.mark.parametrize(("key", "value"), [("a b", "v"), ("k", "-v"), ("k", "v" * 64), ("/k", "v"), ("", "v")])
def test_a_malformed_label_is_named(key, value):
    with pytest.raises(ConfigError, match="invalid node labels: "):
        check_labels({key: value})


def test_taints_are_read_as_kubelet_reads_them():
    assert parse_taints("a=b:NoSchedule,example.com/c:NoExecute") == (
        Taint("a", "b", "NoSchedule"),
        Taint("example.com/c", "", "NoExecute"),
    )
    assert parse_taints("") == ()


def test_a_taint_without_a_value_has_none_in_the_api():
    assert Taint("a", "b", "NoSchedule").as_object() == {"key": "a", "value": "b", "effect": "NoSchedule"}
    assert Taint("a", "", "NoExecute").as_object() == {"key": "a", "effect": "NoExecute"}


@pytest.mark.parametrize(
    "text", ["a", "a=b", "a=b:Never", "a:NoSchedule,a=b:NoSchedule", "=b:NoSchedule", "a=b=c:NoSchedule"]
)
def test_a_wrong_taint_is_refused(text):
    with pytest.raises(ConfigError, match="taint"):
        parse_taints(text)
