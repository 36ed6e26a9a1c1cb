import asyncio

import pytest

from tests.fakes import FakeClock, FakeObjects


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
def registered():
    return asyncio.Event()


@pytest.fixture
def rand():
    return lambda: 0.0
