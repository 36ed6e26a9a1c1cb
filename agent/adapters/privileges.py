"""Work that root does with the rights of another user, whose files could mislead root."""

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from agent.core.errors import ConfigError
from agent.core.text import printable

# What discovery and OpenSSL read. The rest of root's environment is not for a program that the user may have chosen.
_ENVIRONMENT = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"}) | {
    name for proxy in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (proxy, proxy.upper())
}
_CHUNK_BYTES = 65536
_LAYOUT = "\n\t"  # control characters that the output of a program may have
_MOST_BYTES = 2 * 2**30  # of memory: a file of the user's may be of any size


def run_as(uid: int, gid: int, action: Callable[[], str], *, seconds: float) -> str:
    """Run `action` in a child process that has the rights of a user and no terminal, and return what it returns.

    The child is a fork that changed its user, so the kernel lets no process of that user trace it. Raises the
    ConfigError of the child, or one of its own if the child fails otherwise or does not end in time, as with a FIFO.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the child would print once more what is still in it
    answer, answering = os.pipe()
    output, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(uid, gid, action, answering, writing)
    os.close(answering)
    os.close(writing)
    try:
        text = _answer(answer, output, seconds)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(answer)
        os.close(output)
    if text is None:
        raise ConfigError(f"what was to be done as user {uid} did not end within {seconds:.0f} s")
    try:
        value, reason, hint = json.loads(text)
    except ValueError:
        raise ConfigError(f"what was to be done as user {uid} failed") from None
    if reason is not None:
        raise ConfigError(printable(reason, keep=_LAYOUT), hint=printable(hint, keep=_LAYOUT))
    return str(value)


def _child(uid: int, gid: int, action: Callable[[], str], answering: int, writing: int) -> NoReturn:
    try:
        os.setsid()  # no terminal that a program of the user's could type on
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, standard in ((null, 0), (writing, 1), (writing, 2)):
            os.dup2(descriptor, standard)
        sys.stdout = sys.stderr = os.fdopen(writing, "w", buffering=1, errors="replace")
        _become(uid, gid)
        os.write(answering, json.dumps([action(), None, ""]).encode())
    except BaseException as error:  # the parent's code must not run a second time
        os.write(answering, json.dumps(["", _reason(error), getattr(error, "hint", "")]).encode())
    finally:
        os._exit(0)


def _reason(error: BaseException) -> str:
    """One line, whatever the files of the user led to."""
    if isinstance(error, ConfigError):
        return str(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"


def _become(uid: int, gid: int) -> None:
    for name in os.environ.keys() - _ENVIRONMENT:
        del os.environ[name]
    os.environ["HOME"] = "/"
    os.chdir("/")
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))  # not address space: threads reserve much
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _answer(answer: int, output: int, seconds: float) -> bytes | None:
    """What the child answered: nothing if it died, None if it takes too long. Its output becomes ours meanwhile."""
    end_seconds, text, waiting = time.monotonic() + seconds, b"", [answer, output]
    while answer in waiting:
        ready = select.select(waiting, [], [], max(0.0, end_seconds - time.monotonic()))[0]
        if time.monotonic() > end_seconds:
            return None
        for descriptor in ready:
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                waiting.remove(descriptor)
            elif descriptor == answer:
                text += chunk
            else:
                _print(chunk)
    os.set_blocking(output, False)  # a program that the child left behind may have it open
    with contextlib.suppress(BlockingIOError):
        _print(os.read(output, _CHUNK_BYTES))
    return text


def _print(output: bytes) -> None:
    sys.stderr.write(printable(output.decode(errors="replace"), keep=_LAYOUT))
    sys.stderr.flush()
