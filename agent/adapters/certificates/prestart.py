"""Start the key worker early, so that it loads its libraries while the daemon loads its own."""

import subprocess
from pathlib import Path

from agent.adapters.interpreter import python_module
from agent.core.config import Config

KEY_WORKER_MODULE = "agent.adapters.certificates.key_worker_main"


def prestart_key_worker(config: Config) -> subprocess.Popen[bytes] | None:
    """Start a key worker where a TLS bootstrap will surely need one; return None elsewhere."""
    if not config.certificates.bootstrap_kubeconfig or not config.kubeconfig:
        return None
    pipe = subprocess.PIPE
    try:
        if Path(config.kubeconfig).exists():
            return None
        return subprocess.Popen(python_module(KEY_WORKER_MODULE), stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603  our own module
    except OSError:
        return None  # KeyWorker starts another one when it needs a key, and reports what is wrong
