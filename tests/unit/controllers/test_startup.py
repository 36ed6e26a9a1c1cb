from datetime import timedelta

import pytest

from agent.controllers.startup import StartupLatency
from agent.core.metrics import Registry
from tests.fakes import START, FakeClock

PREFIX, SUFFIX = "kubelet_node_startup_", "duration_seconds"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def metrics():
    return Registry()


@pytest.fixture
def startup(clock, metrics):
    return StartupLatency(clock, metrics, booted_at=START - timedelta(seconds=100))


def told(metrics):
    return {
        family.name.removeprefix(PREFIX).removesuffix(SUFFIX): family.samples[0].value for family in metrics.families()
    }


def test_the_steps_of_a_new_node_are_measured_once(clock, startup, metrics):
    for step in (startup.attempted, startup.registered, startup.ready) * 2:
        clock.elapsed += 2
        step()
    assert told(metrics) == {
        "pre_kubelet_": 100,
        "pre_registration_": 2,
        "registration_": 2,
        "post_registration_": 2,
        "": 106,
    }


def test_a_node_that_was_there_already_is_not_measured(clock, startup, metrics):
    startup.attempted()
    clock.elapsed += 2
    startup.ready()
    assert set(told(metrics).values()) == {0}


def test_a_machine_that_does_not_tell_when_it_came_up_leaves_that_out(clock, metrics):
    startup = StartupLatency(clock, metrics)
    startup.attempted()
    startup.registered()
    clock.elapsed += 3
    startup.ready()
    assert told(metrics)["post_registration_"] == 3
    assert told(metrics)[""] == told(metrics)["pre_kubelet_"] == 0
