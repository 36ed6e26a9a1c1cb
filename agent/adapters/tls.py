"""TLS contexts for connections that we open, and files in memory: OpenSSL reads keys from files only."""

import os
import ssl
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


def client_context(authority: bytes = b"", *, verify: bool = True) -> ssl.SSLContext:
    """Return a context that verifies as Go does, by this authority or the system's. Raises SSLError if none loads.

    Not ssl.create_default_context: it writes the keys of connections to the file that SSLKEYLOGFILE names, and since
    Python 3.13 it asks more of a CA certificate than Go does, and than many clusters' CA fulfils.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # any authority of the file is trusted, root or not
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        with in_memory(authority) as (path,):
            context.load_verify_locations(path)
    else:
        context.load_default_certs()
    return context


@contextmanager
def without_system_cas() -> Iterator[None]:
    """Let aiohttp be imported without a context of the system's CAs: 1.5 MiB for a default that we never use."""
    before = {name: os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")}
    os.environ |= dict.fromkeys(before, os.devnull)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def no_password() -> bytes:
    """Refuse an encrypted key; without this callback, OpenSSL asks for a password on the terminal."""
    raise ValueError("the key is encrypted, and a daemon has nobody to ask for the password")
