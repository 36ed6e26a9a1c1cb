import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.island import Island
from tests.container import fixtures
from tests.container.contained import Contained
from tests.container.engine import Engine

engine, image = fixtures.engine, fixtures.image


@contextmanager
def _starter(engine: Engine, image: str, plane: ControlPlane, name: str) -> Iterator[Callable[..., Contained]]:
    with ExitStack() as life:
        island = life.enter_context(Island(plane.layout.apiserver))

        def begin(*words: str, join: bool = True) -> Contained:
            made = Contained(engine, image, name, island, plane)
            life.callback(made.remove)
            made.run(*(made.join_words() if join else ()), *words)
            return made

        yield begin


@pytest.fixture
def start(
    engine: Engine, image: str, control_plane: ControlPlane, node_name: str
) -> Iterator[Callable[..., Contained]]:
    """Starts a container that has nothing but a network, and removes it with its Node after the test."""
    with _starter(engine, image, control_plane, node_name) as begin:
        yield begin


@pytest.fixture(scope="module")
def joined(engine: Engine, image: str, control_plane: ControlPlane) -> Iterator[Contained]:
    """A container that is a node; tests share it, and leave it running."""
    with _starter(engine, image, control_plane, f"container-{secrets.token_hex(3)}") as begin:
        container = begin()
        container.wait_until_ready()
        yield container
