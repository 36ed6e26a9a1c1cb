"""Fixtures for all who need the image; a conftest.py takes them by importing them."""

import pytest

from tests.cluster.lacking import lacking
from tests.container.engine import Engine, NoEngine
from tests.container.image import build_image


@pytest.fixture(scope="session")
def engine(root: None) -> Engine:
    """podman and buildah, where they can be used."""
    try:
        return Engine.opened()
    except NoEngine as reason:
        lacking(str(reason))


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The image, as the Dockerfile makes it."""
    return build_image(engine)
