"""A head start for the child that makes keys: it loads its libraries while the daemon loads its own."""

import subprocess
from pathlib import Path

from agent.adapters.interpreter import python_module
from agent.core.config import Config

CHILD = "agent.adapters.certificates.child"


def early_child(config: Config) -> subprocess.Popen[bytes] | None:
    """A child that waits for its order, where a bootstrap will surely have one; None elsewhere."""
    if not config.certificates.bootstrap_kubeconfig or not config.kubeconfig:
        return None
    pipe = subprocess.PIPE
    try:
        if Path(config.kubeconfig).exists():
            return None
        return subprocess.Popen(python_module(CHILD), stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  our own module
    except OSError:
        return None  # whoever needs a key will try again, and tell what is wrong
