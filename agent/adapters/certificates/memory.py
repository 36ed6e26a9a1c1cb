"""Files in memory: OpenSSL reads keys from files only, and keys should not be on a disk."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def memory_file(content: bytes = b"") -> int:
    """Create a file in memory and return its descriptor."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("fake-kubelet")
    else:  # a Python that was built for an old C library
        descriptor = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)  # noqa: S108  it has no name there
    os.pwrite(descriptor, content, 0)
    return descriptor


def path_of(descriptor: int) -> Path:
    """Return the path of a descriptor, which only this process and its user can open."""
    return Path(f"/proc/self/fd/{descriptor}")


@contextmanager
def in_memory(*contents: bytes) -> Iterator[list[Path]]:
    """Yield paths of files in memory with these contents; they are gone after the block."""
    with ExitStack() as stack:
        paths = []
        for content in contents:
            descriptor = memory_file(content)
            stack.callback(os.close, descriptor)
            paths.append(path_of(descriptor))
        yield paths
