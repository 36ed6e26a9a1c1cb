import pytest

from agent.core.config import Config, Heartbeat, Resources, Serving
from agent.core.errors import ConfigError


def test_the_defaults_are_kubelets():
    config = Config(node_name="n1")
    assert (config.heartbeat.status_update_seconds, config.heartbeat.status_report_seconds) == (10, 300)
    assert (config.heartbeat.lease_duration_seconds, config.heartbeat.lease_renew_seconds) == (40, 10)
    assert (config.resources.max_pods, config.serving.port, config.serving.healthz_port) == (110, 10250, 10248)


def test_a_heartbeat_request_lasts_no_longer_than_the_shorter_of_the_two_periods():
    assert Heartbeat(status_update_seconds=60, lease_duration_seconds=40).request_timeout_seconds == 40
    assert Heartbeat(status_update_seconds=5).request_timeout_seconds == 5


@pytest.mark.parametrize("name", ["", "Node", "a_b", "-a", "a..b", "a" * 254])
def test_a_name_that_no_node_can_have_is_refused(name):
    with pytest.raises(ConfigError, match="give another with --hostname-override"):
        Config(node_name=name)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Heartbeat(lease_duration_seconds=0), "nodeLeaseDurationSeconds must be greater than 0"),
        (lambda: Heartbeat(status_update_seconds=0), "--node-status-update-frequency"),
        (lambda: Heartbeat(status_report_seconds=-1), "--node-status-report-frequency"),
        (lambda: Resources(max_pods=-1), r"maxPods \(--max-pods\) -1 must not be a negative number"),
        (lambda: Serving(port=0), r"port \(--port\) 0 must be between 1 and 65535, inclusive"),
        (lambda: Serving(healthz_port=65536), r"healthzPort \(--healthz-port\) 65536 must be between"),
        (lambda: Serving(healthz_bind_address="here"), "--healthz-bind-address"),
    ],
)
def test_a_wrong_value_is_named(build, message):
    with pytest.raises(ConfigError, match=message):
        build()
