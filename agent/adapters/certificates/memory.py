"""Files that are in memory and have no name: OpenSSL reads keys from files only, and keys belong on no disk."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def memory_file(content: bytes = b"") -> int:
    """The descriptor of a new file in memory."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("fake-kubelet")
    else:  # a Python that was built for an old C library
        descriptor = os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR, 0o600)  # noqa: S108  it has no name there
    os.pwrite(descriptor, content, 0)
    return descriptor


def path_of(descriptor: int) -> Path:
    """The path by which this process, and nobody but its own user, opens such a file."""
    return Path(f"/proc/self/fd/{descriptor}")


@contextmanager
def in_memory(*contents: bytes) -> Iterator[list[Path]]:
    """Paths to read these contents from, as long as the block lasts."""
    with ExitStack() as stack:
        paths = []
        for content in contents:
            descriptor = memory_file(content)
            stack.callback(os.close, descriptor)
            paths.append(path_of(descriptor))
        yield paths
