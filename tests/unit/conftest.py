import logging
from collections.abc import Iterator

import pytest

from agent.loops.membership import Membership
from agent.loops.ownnode import OwnNode
from agent.loops.readiness import Readiness
from agent.loops.weather import Weather
from agent.node import Lanes, Node
from tests.fakes import FakeClock, FakeHost, FakeObjects
from tests.settings import Config, Registration


@pytest.fixture(autouse=True)
def _same_logging() -> Iterator[None]:
    """Have a test that sets up the log leave it as it was: levels decide what the tests after it find in `caplog`."""
    root, ours = logging.getLogger(), logging.getLogger("agent")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    logging.captureWarnings(False)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def nodes(clock):
    return FakeObjects(clock)


@pytest.fixture
def leases(clock):
    return FakeObjects(clock)


@pytest.fixture
def readiness():
    return Readiness()


@pytest.fixture
def registration():
    return Registration()


@pytest.fixture
def membership(registration, readiness):
    return Membership(node_name="n1", registration=registration, wake=readiness.changed)


@pytest.fixture
def own(membership, readiness):
    return OwnNode(membership=membership, wake=readiness.changed)


@pytest.fixture
def rand():
    return lambda: 0.0


@pytest.fixture
def weather(clock, rand):
    return Weather(clock, rand)


@pytest.fixture
def csinodes(clock):
    return FakeObjects(clock)


@pytest.fixture
def host(clock):
    return FakeHost(clock)


@pytest.fixture
def lanes(clock, nodes, leases, csinodes):
    return Lanes(
        nodes=nodes,
        status_nodes=nodes,
        lease_nodes=nodes,
        leases=leases,
        csinodes=csinodes,
        events=FakeObjects(clock),
        own_node=nodes,
    )


@pytest.fixture
def make_node(clock, lanes, host, rand):
    """A whole node on fakes, with the given settings."""

    def build(**settings):
        return Node(config=Config(node_name="n1", **settings), host=host, lanes=lanes, clock=clock, rand=rand)

    return build
