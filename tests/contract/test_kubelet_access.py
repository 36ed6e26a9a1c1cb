"""What the API server passes on to the kubelet of a node: logs, exec and its like, and the proxy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api import NODES, PODS, Api
from tests.cluster.stub_kubelet import StubKubelet
from tests.cluster.waiting import eventually

NO_SUCH_PORT = 1  # nobody listens there


@pytest.fixture(scope="module")
def stub() -> Iterator[StubKubelet]:
    with StubKubelet() as found:
        yield found


@pytest.fixture
def kubelet(stub: StubKubelet) -> StubKubelet:
    """A kubelet that has received nothing yet."""
    stub.received.clear()
    stub.answers.clear()
    stub.released.clear()
    return stub


@pytest.fixture
def pod(api: Api, kubelet: StubKubelet, name: str) -> Iterator[str]:
    """The path of a pod on the kubelet's node."""
    api.create(NODES, kubelet.node(name))
    yield create_pod(api, name, node_name=name)
    api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")


def create_pod(api: Api, name: str, *, node_name: str = "", containers: tuple[str, ...] = ("main",)) -> str:
    spec: dict[str, Any] = {"automountServiceAccountToken": False, "schedulerName": "nobody"}
    spec["containers"] = [{"name": container, "image": "i"} for container in containers]
    api.create(PODS, {"metadata": {"name": name}, "spec": spec | ({"nodeName": node_name} if node_name else {})})
    return f"{PODS}/{name}"


def test_a_log_comes_from_the_kubelet(api: Api, pod: str, kubelet: StubKubelet, name: str) -> None:
    kubelet.answers[f"/containerLogs/default/{name}/main"] = (200, "one line\n")
    answer = api.ask("GET", f"{pod}/log", accept="application/json, */*")
    assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, "text/plain", b"one line\n")
    (received,) = kubelet.received
    assert (received.method, received.path) == ("GET", f"/containerLogs/default/{name}/main")
    assert received.query == []


def test_the_options_of_a_log_are_passed_on(api: Api, pod: str, kubelet: StubKubelet) -> None:
    api.ask("GET", f"{pod}/log", container="main", follow="true", tailLines="3", previous="false", limitBytes="99")
    (received,) = kubelet.received
    assert sorted(received.query) == [("follow", "true"), ("limitBytes", "99"), ("tailLines", "3")]


def test_a_followed_log_arrives_line_by_line(api: Api, pod: str, kubelet: StubKubelet, name: str) -> None:
    kubelet.answers[f"/containerLogs/default/{name}/main"] = (200, "first\n…second\n")
    with api.watch(f"{pod}/log", follow="true") as stream:
        lines = stream.lines()
        assert next(lines) == b"first\n"
        kubelet.released.set()
        assert list(lines) == [b"second\n"]


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (400, "BadRequest", "the reason"),
        (404, "NotFound", "the server could not find the requested resource ( pods/log {name})"),
        (500, "InternalError", "Internal error occurred: the reason"),
    ],
)
def test_the_error_of_a_kubelet_is_an_error_of_the_log(
    api: Api, pod: str, kubelet: StubKubelet, name: str, status: int, reason: str, message: str
) -> None:
    kubelet.answers[f"/containerLogs/default/{name}/main"] = (status, "the reason")
    assert api.ask("GET", f"{pod}/log").refusal == (status, reason, message.format(name=name))


def test_a_pod_without_a_node_has_an_empty_log(api: Api, name: str) -> None:
    answer = api.ask("GET", f"{create_pod(api, name)}/log")
    assert (answer.status, answer.body) == (204, b"")


def test_a_container_must_be_one_of_the_pod(api: Api, pod: str, name: str) -> None:
    refusal = api.ask("GET", f"{pod}/log", container="other").refusal
    assert refusal == (400, "BadRequest", f"container other is not valid for pod {name}")


def test_of_several_containers_one_must_be_named(api: Api, name: str) -> None:
    path = create_pod(api, name, containers=("one", "two"))
    message = f"a container name must be specified for pod {name}, choose one of: [one two]"
    assert api.ask("GET", f"{path}/log").refusal == (400, "BadRequest", message)


@pytest.mark.parametrize("subresource", ["log", "exec", "attach", "portforward"])
def test_there_must_be_such_a_pod(api: Api, name: str, subresource: str) -> None:
    refusal = api.ask("GET", f"{PODS}/{name}/{subresource}").refusal
    assert refusal == (404, "NotFound", f'pods "{name}" not found')


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_a_stream_needs_a_node(api: Api, name: str, subresource: str) -> None:
    refusal = api.ask("POST", f"{create_pod(api, name)}/{subresource}", stdout="true", command="ls").refusal
    assert refusal == (400, "BadRequest", f"pod {name} does not have a host assigned")


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_a_stream_needs_an_upgrade(api: Api, pod: str, subresource: str) -> None:
    refusal = api.ask("POST", f"{pod}/{subresource}", stdout="true", command="ls").refusal
    assert refusal == (400, "BadRequest", "Upgrade request required")


SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}


@pytest.mark.parametrize(
    ("subresource", "query", "path", "passed_on"),
    [
        (
            "exec",
            "command=ls&command=-l&stdin=true&stdout=true&stderr=false",
            "/exec/default/{name}/main",
            [("command", "ls"), ("command", "-l"), ("input", "1"), ("output", "1")],
        ),
        (
            "attach",
            "container=main&stdout=1&stderr=true&tty=false",
            "/attach/default/{name}/main",
            [("error", "1"), ("output", "1")],
        ),
        ("portforward", "", "/portForward/default/{name}", []),
    ],
    ids=["exec", "attach", "portforward"],
)
def test_an_upgraded_connection_reaches_the_kubelet(
    api: Api, pod: str, kubelet: StubKubelet, name: str, subresource: str, query: str, path: str, passed_on: Any
) -> None:
    with api.upgraded("POST", f"{pod}/{subresource}?{query}", SPDY) as (status, headers, connection):
        assert (status, headers["Upgrade"]) == (101, "SPDY/3.1")
        for words in (b"to the node", b"and back" * 100):
            connection.sendall(words)
            assert exactly(connection, len(words)) == words
        connection.sendall(b"end")
        assert exactly(connection, 3) == b"end"
        assert connection.recv(1) == b""  # the kubelet has closed it
    (received,) = kubelet.received
    assert (received.method, received.path) == ("POST", path.format(name=name))
    assert sorted(received.query, key=lambda entry: entry[0]) == passed_on
    assert received.headers["X-Stream-Protocol-Version"] == "v4.channel.k8s.io"


def test_the_proxy_passes_upgrades_on_too(api: Api, pod: str, kubelet: StubKubelet, name: str) -> None:
    path = f"{NODES}/{name}/proxy/attach/default/{name}/main"
    with api.upgraded("GET", path, SPDY | {"Upgrade": "websocket"}) as (status, headers, connection):
        assert (status, headers["Upgrade"]) == (101, "websocket")
        connection.sendall(b"end")
        assert exactly(connection, 3) == b"end"
    assert [received.path for received in kubelet.received] == [f"/attach/default/{name}/main"]


def exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


def test_a_client_that_leaves_ends_the_connection_to_the_kubelet(api: Api, pod: str, kubelet: StubKubelet) -> None:
    before = kubelet.echoing
    with api.upgraded("POST", f"{pod}/exec?stdout=true&command=ls", SPDY) as (status, _, _connection):
        assert status == 101
        eventually(lambda: kubelet.echoing == before + 1)
    eventually(lambda: kubelet.echoing == before)


def test_a_kubelet_may_refuse_an_upgrade(api: Api, pod: str, kubelet: StubKubelet, name: str) -> None:
    kubelet.answers[f"/exec/default/{name}/main"] = (500, "nothing runs here")
    answer = api.ask("POST", f"{pod}/exec", headers=SPDY, stdout="true", command="ls")
    assert (answer.status, answer.body) == (500, b"nothing runs here")


def test_the_proxy_passes_requests_on_as_they_are(api: Api, pod: str, kubelet: StubKubelet, name: str) -> None:
    kubelet.answers["/stats/summary"] = (418, "short and stout")
    answer = api.ask("POST", f"{NODES}/{name}/proxy/stats/summary", b"{}", a="b c")
    assert (answer.status, answer.body) == (418, b"short and stout")
    (received,) = kubelet.received
    assert (received.method, received.path, received.query) == ("POST", "/stats/summary", [("a", "b c")])
    assert received.body == b"{}"


@pytest.mark.parametrize(("asked", "path"), [("/", "/"), ("/logs/", "/logs/"), ("/a%20b%25", "/a%20b%25")])
def test_the_proxy_keeps_the_path(api: Api, pod: str, kubelet: StubKubelet, name: str, asked: str, path: str) -> None:
    assert api.ask("GET", f"{NODES}/{name}/proxy{asked}").status == 200
    assert [received.path for received in kubelet.received] == [path]


def test_the_proxy_without_a_path_leads_to_its_root(api: Api, pod: str, name: str) -> None:
    answer = api.ask("GET", f"{NODES}/{name}/proxy")
    assert (answer.status, answer.headers["Location"]) == (301, f"{NODES}/{name}/proxy/")


def test_a_kubelet_that_does_not_answer(api: Api, kubelet: StubKubelet, name: str) -> None:
    node = kubelet.node(name)
    node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] = NO_SUCH_PORT
    api.create(NODES, node)
    path = create_pod(api, name, node_name=name)
    refused = f"dial tcp {kubelet.address}:{NO_SUCH_PORT}: connect: connection refused"
    code, _, message = api.ask("GET", f"{path}/log").refusal
    assert (code, message.endswith(refused)) == (500, True), message
    code, _, message = api.ask("POST", f"{path}/exec", headers=SPDY, stdout="true", command="ls").refusal
    assert (code, message.endswith(refused)) == (500, True), message
    code, reason, message = api.ask("GET", f"{NODES}/{name}/proxy/healthz").refusal
    assert (code, reason, message) == (503, "ServiceUnavailable", f"error trying to reach service: {refused}")
    api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")


def test_a_node_without_an_address_cannot_be_reached(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    code, _, message = api.ask("GET", f"{create_pod(api, name, node_name=name)}/log").refusal
    assert (code, message) == (500, "no preferred addresses found; known addresses: []")
    api.delete(f"{PODS}/{name}?gracePeriodSeconds=0")


def test_there_must_be_such_a_node(api: Api, name: str) -> None:
    assert api.ask("GET", f"{NODES}/{name}/proxy/healthz").refusal == (404, "NotFound", f'nodes "{name}" not found')
