from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.island import Island
from tests.container import fixtures
from tests.container.contained import Contained
from tests.container.engine import Engine

engine, image = fixtures.engine, fixtures.image


@pytest.fixture
def start(
    engine: Engine, image: str, control_plane: ControlPlane, node_name: str
) -> Iterator[Callable[..., Contained]]:
    """Starts containers that have nothing but a network, and removes them with their Nodes after the test."""
    with ExitStack() as life:
        island = life.enter_context(Island(control_plane.layout.apiserver))

        def begin(*words: str, join: bool = True) -> Contained:
            made = Contained(engine, image, node_name, island, control_plane)
            life.callback(made.remove)
            made.run(*(made.join_words() if join else ()), *words)
            return made

        yield begin
