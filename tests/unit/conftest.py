import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agent.machinery.runner import Runnable, Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.node import Node
from agent.process import Process
from tests.fakes import FakeClock, FakeCSINodes, FakeHost, FakeLeases, FakeNodes, fake_clients, new_state
from tests.settings import NodeConfig


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
    return FakeNodes(clock)


@pytest.fixture
def leases(clock):
    return FakeLeases(clock)


@pytest.fixture
def rand():
    return lambda: 0.0


@pytest.fixture
def process(host, clock, rand):
    return Process(host, clock, sensor_seconds=1.0, node_name="n1", rand=rand)


@pytest.fixture
def dependencies(process):
    return process.dependencies


@pytest.fixture
def loop_health(process):
    return process.health.failures_only("x")


@pytest.fixture
def config():
    return NodeConfig(node_name="n1")


@pytest.fixture
def state(process, config):
    return new_state(process, config)


@pytest.fixture
def queue(clock):
    return WorkQueue(clock)


@pytest.fixture
def scheduling(queue, dependencies, loop_health):
    return Scheduling(loop="x", queue=queue, dependencies=dependencies, health=loop_health)


@pytest.fixture
def csinodes(clock):
    return FakeCSINodes(clock)


@pytest.fixture
def host(clock):
    return FakeHost(clock)


@pytest.fixture
def clients(clock, nodes, leases, csinodes):
    return replace(fake_clients(clock, nodes), leases=leases, csinodes=csinodes)


class HostedNode:
    """A node, and the process that hosts it alone."""

    def __init__(self, process: Process, node: Node) -> None:
        self.process, self.node = process, node
        self.health, self.state = process.health, node.state
        process.start()

    @property
    def tasks(self) -> list[Runnable]:
        return [*self.process.tasks, *self.process.lasting_tasks]

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of a metric by those of its labels."""
        (family,) = (family for family in self.process.metrics.families() if family.name == name)
        return {tuple(sample.labels.values()): sample.value for sample in family.samples}


@pytest.fixture
def make_node(clock, clients, nodes, host, rand):
    """A whole node on fakes, with the given settings."""

    def build(*, clients=clients, nodes=nodes, pods=None, rand=rand, sensor_seconds=1.0, settings=None, **more):
        config = NodeConfig(node_name="n1", **(settings or {}), **more)
        process = Process(host, clock, sensor_seconds=sensor_seconds, node_name="n1", rand=rand)
        node = process.add(config, clients)
        process.reflect(nodes, pods)
        return HostedNode(process, node)

    return build
