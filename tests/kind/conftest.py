import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.lacking import lacking
from tests.container import fixtures
from tests.container.engine import Engine
from tests.kind.cluster import KindCluster

engine, image = fixtures.engine, fixtures.image
_HELPERS = ("aardvark-dns", "netavark")  # of podman, without which containers have no names
_PLACES = "/usr/lib/podman:/usr/libexec/podman"


@pytest.fixture(scope="session")
def kind(engine: Engine, binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KindCluster]:
    """A cluster made by kind; all tests share it."""
    if missing := [name for name in _HELPERS if shutil.which(name, path=_PLACES) is None]:
        lacking(f"{', '.join(missing)} not installed; see .ci/packages")
    with KindCluster(engine, binaries, tmp_path_factory.mktemp("kind")) as cluster:
        yield cluster
