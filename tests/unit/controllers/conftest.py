"""Pods, and the controller that all those use who end them."""

import pytest

from agent.controllers.pods import PodController, PodWorkers
from tests.fakes import POD_NODE, FakePods, FakeRecorder


@pytest.fixture
def pods(clock):
    return FakePods(clock, history_length=1)  # no watch needs more


@pytest.fixture
def told():
    return FakeRecorder()


@pytest.fixture
def make_controller(pods, nodes, state, process, loop_health):
    """A controller that records its events somewhere."""

    def make(events):
        state.put(POD_NODE)
        controller = PodController(
            state,
            pods,
            nodes=nodes,
            events=events,
            queue=process.engine.pod_queue,
            dependencies=process.dependencies,
            health=loop_health,
        )
        consume = {"DELETED": controller.remove}
        pods.on_change = lambda change: consume.get(change.kind, controller.put)(change.object)
        return controller

    return make


@pytest.fixture
def controller(make_controller, told):
    return make_controller(told)


@pytest.fixture
def workers(process):
    return PodWorkers("pods", process.engine.pod_queue, workers=8)
