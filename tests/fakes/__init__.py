"""Stand-ins for the ports, with state that a test sets and reads; mypy checks them against the Protocols."""

from tests.fakes.certificates import FakeBootstrapState, FakeCSRs, FakeKeys, FakeStore, certificate_pem
from tests.fakes.clock import START, FakeClock, idle, running, settle, until
from tests.fakes.host import GIB, FakeHost, facts, host_snapshot, interface, new_state
from tests.fakes.machine import FakeLogind, FakeManifests, FakeServiceManager
from tests.fakes.machinery import EndlessLoop, FakeController, FakeReflectorStore, ScriptedWatch
from tests.fakes.objects import (
    POD_NODE,
    FailingNodes,
    FakeCSINodes,
    FakeEvents,
    FakeLeases,
    FakeNodes,
    FakeObjects,
    FakePods,
    ForgottenEvents,
    fake_clients,
    succeed,
)
from tests.fakes.recorder import FakeRecorder
from tests.fakes.reviews import FakeReviews

__all__ = [
    "GIB",
    "POD_NODE",
    "START",
    "EndlessLoop",
    "FailingNodes",
    "FakeBootstrapState",
    "FakeCSINodes",
    "FakeCSRs",
    "FakeClock",
    "FakeController",
    "FakeEvents",
    "FakeHost",
    "FakeKeys",
    "FakeLeases",
    "FakeLogind",
    "FakeManifests",
    "FakeNodes",
    "FakeObjects",
    "FakePods",
    "FakeRecorder",
    "FakeReflectorStore",
    "FakeReviews",
    "FakeServiceManager",
    "FakeStore",
    "ForgottenEvents",
    "ScriptedWatch",
    "certificate_pem",
    "facts",
    "fake_clients",
    "host_snapshot",
    "idle",
    "interface",
    "new_state",
    "running",
    "settle",
    "succeed",
    "until",
]
