import pytest

from agent.adapters.server.shared_port import SharedRoutes, subject
from agent.core.routing import NodePath, NoRoute, Redirect, RouteMatch, RouteTable

PODS = {("default", "p"): "n1"}


@pytest.fixture
def routes():
    nodes = {name: RouteTable(exact={"/metrics/resource": f"resource of {name}"}) for name in ("n1", "n2")}
    return SharedRoutes(RouteTable(exact={"/healthz": "health of all"}), nodes.get)


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("/metrics/nodes/n1/metrics/resource", RouteMatch("resource of n1", {})),
        ("/metrics/nodes/n%32/metrics/resource", RouteMatch("resource of n2", {})),
        ("/healthz", RouteMatch("health of all", {})),
        ("/metrics/resource", NoRoute()),
        ("/metrics/nodes/n3/metrics/resource", NoRoute()),
        ("/metrics/nodes/n1/healthz", NoRoute()),
        ("/metrics/nodes/n1", NoRoute()),
        ("/metrics/nodes//metrics/resource", Redirect("/metrics/nodes/metrics/resource")),
        ("/metrics/nodes/n1//metrics/resource", Redirect("/metrics/nodes/n1/metrics/resource")),
    ],
)
def test_each_node_has_its_own_paths_below_its_name(routes, path, match):
    assert routes.find(path, "GET") == match


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/metrics/nodes/n2/stats/summary", NodePath("n2", "/stats/summary")),
        ("/containerLogs/default/p/c", NodePath("n1", "/containerLogs/default/p/c")),
        ("/exec/default/p/c", NodePath("n1", "/exec/default/p/c")),
        ("/containerLogs/default/nobody/c", NodePath("", "/containerLogs/default/nobody/c")),
        ("/pods", NodePath("", "/pods")),
    ],
)
def test_a_caller_needs_the_right_for_the_node_that_the_path_is_about(path, found):
    assert subject(path, lambda namespace, name: PODS.get((namespace, name), "")) == found


def test_on_the_port_of_one_node_the_right_for_that_node_is_enough():
    assert subject("/pods", lambda *_: "", default="n1") == NodePath("n1", "/pods")
