"""What takes long to make, made once by whoever comes first, and kept for all others."""

import fcntl
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file's lock, which the kernel frees even if we are killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for what another process is building", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept(target: Path, make: Callable[[Path], None]) -> Path:
    """The target, which `make` writes at the first call: under another name, so that a half of it is never used."""
    if not target.exists():
        partial = target.with_name(f"partial-{target.name}")
        with locked(target.with_name(f"{target.name}.lock")):
            if not target.exists():  # nobody else has made it while we waited
                if partial.is_dir():
                    shutil.rmtree(partial)
                partial.unlink(missing_ok=True)
                make(partial)
                partial.rename(target)
    return target
