"""Python processes that this program starts: their command line, and the key worker that starts early."""

import subprocess
import sys
from pathlib import Path

from agent.core.config import ProcessConfig

KEY_WORKER_MODULE = "agent.adapters.certificates.key_worker_main"


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the argv that runs one of our modules.

    Without -P, `python -m` puts the working directory first on sys.path, and code that lies there runs as us. Not -I:
    it hides the user's site-packages too, where `pip install --user` has put us.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def prestart_key_worker(config: ProcessConfig) -> subprocess.Popen[bytes] | None:
    """Start a key worker if a TLS bootstrap will need one; None if none will, or if the process does not start.

    So the key worker loads its libraries while the daemon loads its own.
    """
    if not config.certificates.bootstrap_kubeconfig or not config.kubeconfig:
        return None
    pipe = subprocess.PIPE
    try:
        if Path(config.kubeconfig).exists():
            return None
        return subprocess.Popen(python_module(KEY_WORKER_MODULE), stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  our own module
    except OSError:
        return None  # KeyWorker starts another one when it needs a key, and reports what is wrong
