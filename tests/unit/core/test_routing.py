import pytest

from agent.core.routing import Found, Missing, Moved, Refused, Route, Service, Table

TABLE = Table(
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
        ("/healthz", "FOO", Found("healthz", {})),
        ("/healthz/", "GET", Missing()),
        ("/metrics/x", "GET", Missing()),
        ("/", "GET", Missing()),
        ("/nope", "GET", Missing()),
        ("/pods", "GET", Found("pods", {})),
        ("/pods/", "GET", Found("pods", {})),
        ("/%70ods", "GET", Found("pods", {})),
        ("/pods/x", "GET", Refused(404, "404: Page Not Found")),
        ("/pods", "POST", Refused(405, "405: Method Not Allowed", "GET")),
        ("//pods", "GET", Moved("/pods")),
        ("/a/../pods/", "GET", Moved("/pods/")),
        ("/stats", "GET", Moved("/stats/")),
        ("/stats/", "GET", Refused(404, "404: Page Not Found")),
        ("/stats/summary", "POST", Found("summary", {})),
        ("/stats/summary", "PUT", Refused(405, "405: Method Not Allowed", "GET, POST")),
        ("/off/any/thing", "GET", Found("off", {})),
        ("/off", "GET", Moved("/off/")),
        ("/logs/", "GET", Found("logs", {})),
        ("/logs/a/b.log", "GET", Found("logs", {"path": "a/b.log"})),
        ("/logs/%2e%2e/x", "GET", Found("logs", {"path": "../x"})),
        ("/logs/../etc/passwd", "GET", Moved("/etc/passwd")),
        ("/exec/n/p/c", "GET", Found("exec", {"ns": "n", "pod": "p", "c": "c"})),
        ("/exec/n/p/u/c", "GET", Found("exec", {"ns": "n", "pod": "p", "uid": "u", "c": "c"})),
        ("/exec/n/p", "GET", Refused(404, "404: Page Not Found")),
        ("/exec", "GET", Refused(404, "404: Page Not Found")),
    ],
)
def test_a_path_finds_what_a_kubelets_mux_and_services_find(path, method, found):
    assert TABLE.find(path, method) == found


def test_the_longest_of_the_trees_counts():
    table = Table(exact={}, trees={"/a/": "a", "/a/b/": "b"})
    assert [table.find(path, "GET").endpoint for path in ("/a/x", "/a/b/x")] == ["a", "b"]


@pytest.mark.parametrize(
    ("accept", "is_served"),
    [("", True), ("*/*", True), ("text/html, application/json;q=0.9", True), ("text/html", False)],
)
def test_who_does_not_take_what_there_is_is_told_so(accept, is_served):
    found = TABLE.find("/pods", "GET", accept)
    assert isinstance(found, Found) == is_served
    if not is_served:
        assert found == Refused(406, "406: Not Acceptable\n\nAvailable representations: application/json")
