import pytest

from agent.core.routing import NoRoute, Redirect, Route, RouteMatch, RouteTable, Service, ServiceError

TABLE = RouteTable(
    exact={"/healthz": "healthz", "/metrics": "metrics"},
    trees={"/off/": "off"},
    services=[
        Service("/pods", (Route("", "pods"),), "application/json"),
        Service("/stats/", (Route("/summary", "summary", ("GET", "POST")),)),
        Service("/logs/", (Route("", "logs"), Route("/{path:*}", "logs"))),
        Service("/exec", (Route("/{ns}/{pod}/{c}", "exec"), Route("/{ns}/{pod}/{uid}/{c}", "exec"))),
    ],
)


@pytest.mark.parametrize(
    ("path", "method", "found"),
    [
        ("/healthz", "FOO", RouteMatch("healthz", {})),
        ("/healthz/", "GET", NoRoute()),
        ("/metrics/x", "GET", NoRoute()),
        ("/", "GET", NoRoute()),
        ("/nope", "GET", NoRoute()),
        ("/pods", "GET", RouteMatch("pods", {})),
        ("/pods/", "GET", RouteMatch("pods", {})),
        ("/%70ods", "GET", RouteMatch("pods", {})),
        ("/pods/x", "GET", ServiceError(404, "404: Page Not Found")),
        ("/pods", "POST", ServiceError(405, "405: Method Not Allowed", "GET")),
        ("//pods", "GET", Redirect("/pods")),
        ("/a/../pods/", "GET", Redirect("/pods/")),
        ("/stats", "GET", Redirect("/stats/")),
        ("/stats/", "GET", ServiceError(404, "404: Page Not Found")),
        ("/stats/summary", "POST", RouteMatch("summary", {})),
        ("/stats/summary", "PUT", ServiceError(405, "405: Method Not Allowed", "GET, POST")),
        ("/off/any/thing", "GET", RouteMatch("off", {})),
        ("/off", "GET", Redirect("/off/")),
        ("/logs/", "GET", RouteMatch("logs", {})),
        ("/logs/a/b.log", "GET", RouteMatch("logs", {"path": "a/b.log"})),
        ("/logs/%2e%2e/x", "GET", RouteMatch("logs", {"path": "../x"})),
        ("/logs/../etc/passwd", "GET", Redirect("/etc/passwd")),
        ("/exec/n/p/c", "GET", RouteMatch("exec", {"ns": "n", "pod": "p", "c": "c"})),
        ("/exec/n/p/u/c", "GET", RouteMatch("exec", {"ns": "n", "pod": "p", "uid": "u", "c": "c"})),
        ("/exec/n/p", "GET", ServiceError(404, "404: Page Not Found")),
        ("/exec", "GET", ServiceError(404, "404: Page Not Found")),
    ],
)
def test_a_path_finds_what_a_kubelets_mux_and_services_find(path, method, found):
    assert TABLE.find(path, method) == found


def test_the_longest_of_the_trees_counts():
    table = RouteTable(exact={}, trees={"/a/": "a", "/a/b/": "b"})
    assert [table.find(path, "GET").endpoint for path in ("/a/x", "/a/b/x")] == ["a", "b"]


@pytest.mark.parametrize(
    ("accept", "is_served"),
    [("", True), ("*/*", True), ("text/html, application/json;q=0.9", True), ("text/html", False)],
)
def test_who_does_not_take_what_there_is_is_told_so(accept, is_served):
    found = TABLE.find("/pods", "GET", accept)
    assert isinstance(found, RouteMatch) == is_served
    if not is_served:
        assert found == ServiceError(406, "406: Not Acceptable\n\nAvailable representations: application/json")
