import pytest

from agent.core.config import simulation_fields
from agent.core.errors import ConfigError
from agent.core.labels import parse_taints
from tests.settings import Heartbeat, NodeConfig, Pods, Registration, Serving


def test_a_heartbeat_request_lasts_no_longer_than_the_shorter_of_the_two_periods():
    assert Heartbeat(status_update_seconds=60, lease_duration_seconds=40).request_timeout_seconds == 40
    assert Heartbeat(status_update_seconds=5).request_timeout_seconds == 5


@pytest.mark.parametrize("name", ["", "Node", "a_b", "-a", "a..b", "a" * 254])
def test_a_name_that_no_node_can_have_is_refused(name):
    with pytest.raises(ConfigError, match="give another with --hostname-override"):
        NodeConfig(node_name=name)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Heartbeat(status_update_seconds=0), "--node-status-update-frequency"),
        (lambda: Heartbeat(status_report_seconds=-1), "--node-status-report-frequency"),
        (lambda: Serving(healthz_bind_address="here"), "--healthz-bind-address"),
    ],
)
def test_a_wrong_value_is_named(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


@pytest.mark.parametrize(
    ("mode", "taints", "has_hint"),
    [
        ("simulate", "", True),
        ("simulate", "a=b:PreferNoSchedule", True),
        ("simulate", "a=b:NoSchedule", False),
        ("simulate", "a=b:NoExecute", False),
    ],
)
def test_the_taint_that_keeps_pods_away_is_named_where_none_does(mode, taints, has_hint):
    node = NodeConfig(registration=Registration(taints=parse_taints(taints)), pods=Pods(mode=mode))
    assert ("hint" in (simulation_fields(node) or {})) == has_hint


@pytest.mark.parametrize("mode", ["refuse", "ignore"])
def test_nothing_is_said_about_simulated_pods_where_there_are_none(mode):
    assert simulation_fields(NodeConfig(pods=Pods(mode=mode))) is None


def test_a_node_that_is_copied_may_have_labels_that_no_kubelet_may_set():
    Registration(labels={"node-role.kubernetes.io/worker": ""})
    with pytest.raises(ConfigError, match="invalid node labels"):
        Registration(labels={"node-role.kubernetes.io/worker": "-"})
