from dataclasses import replace

import pytest

from agent.core.fleet import Fleet, Group, NodeModel
from agent.core.machine import machine_of
from agent.core.name_template import NameTemplate
from agent.fleet.hosting import HostedFleet
from agent.fleet.starter import Starter
from tests.settings import NodeConfig


@pytest.fixture
def make_fleet():
    """A fleet of one group, with the given fields."""

    def build(count, **fields):
        model = NodeModel(config=NodeConfig(node_name="model"), machine=machine_of({}))
        template = NameTemplate.parse("n{index}")
        group = Group(name="node", count=count, models=(model,), template=template)
        return Fleet(name="test", groups=(replace(group, **fields),))

    return build


@pytest.fixture
def starter(clock):
    return Starter(clock)


@pytest.fixture
def hosted(process, clients, nodes, starter):
    process.reflect(nodes)
    return HostedFleet(process, clients, starter)
