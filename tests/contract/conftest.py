"""Both servers under one contract: the embedded cluster, and a real kube-apiserver."""

import http.client
import json
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.api import NODES, Api
from tests.cluster.control_plane import ControlPlane
from tests.cluster.embedded import EmbeddedCluster

SERVERS = ("mini", pytest.param("real", marks=pytest.mark.real))


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """Which of the two servers the test runs against."""
    return str(request.param)


@pytest.fixture
def api(server: str, request: pytest.FixtureRequest) -> Api:
    """The API server under test."""
    found: Api = request.getfixturevalue(f"{server}_api")
    return found


@pytest.fixture
def mini_api() -> Iterator[Api]:
    """An embedded cluster of the test's own."""
    with EmbeddedCluster() as cluster:
        yield cluster.api


@pytest.fixture
def real_api(control_plane: ControlPlane, name: str) -> Iterator[Api]:
    """The real cluster, left without the test's nodes: dead ones would change how it treats those of the next test."""
    yield control_plane.api
    for node in control_plane.api.items(NODES):
        if node["metadata"]["name"].startswith(name):
            control_plane.api.delete(f"{NODES}/{node['metadata']['name']}")


@pytest.fixture
def forget_history(server: str, request: pytest.FixtureRequest) -> Callable[[], None]:
    """Makes the server forget all changes up to now; the embedded one is born without a past."""

    def compact() -> None:
        if server == "mini":
            return
        etcd = http.client.HTTPConnection("127.0.0.1", request.getfixturevalue("control_plane").layout.etcd)
        etcd.request("POST", "/v3/kv/range", json.dumps({"key": "AA=="}))
        revision = json.loads(etcd.getresponse().read())["header"]["revision"]
        etcd.request("POST", "/v3/kv/compaction", json.dumps({"revision": revision, "physical": True}))
        answer = etcd.getresponse()
        assert answer.status == 200, answer.read()
        etcd.close()

    return compact


@pytest.fixture
def name(node_name: str) -> str:
    """A name of the test's own: the real cluster is shared."""
    return node_name
