import logging
from collections.abc import Iterator

import pytest


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
