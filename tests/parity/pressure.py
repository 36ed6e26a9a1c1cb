"""Real shortage of memory, disk and processes, made for a while and taken back."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ALLOCATE = "import sys; block = bytearray(int(sys.argv[1])); block[::4096] = b'x' * len(block[::4096])"
_THREADS = (
    "import sys, threading\n"
    "threading.stack_size(65536)\n"
    "done = threading.Event()\n"
    "for _ in range(int(sys.argv[1])): threading.Thread(target=done.wait, daemon=True).start()"
)


@contextmanager
def allocated_memory(count: int) -> Iterator[None]:
    """So many bytes that a process really holds."""
    with _holding(_ALLOCATE, count):
        yield


@contextmanager
def waiting_threads(count: int) -> Iterator[None]:
    """So many tasks more than before."""
    with _holding(_THREADS, count):
        yield


@contextmanager
def filled_disk(folder: Path, *, leave_bytes: int) -> Iterator[None]:
    """A filesystem with almost nothing left."""
    ballast = folder / "ballast"
    stat = os.statvfs(folder)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, stat.f_frsize * stat.f_bavail - leave_bytes)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def used_inodes(folder: Path, *, leave: int) -> Iterator[None]:
    """A filesystem with space, but with almost no inodes left."""
    crowd = folder / "crowd"
    crowd.mkdir()
    for number in range(os.statvfs(folder).f_favail - leave):
        (crowd / str(number)).touch()
    try:
        yield
    finally:
        shutil.rmtree(crowd)


@contextmanager
def small_disk(folder: Path, *, mebibytes: int) -> Iterator[Path]:
    """An ext4 filesystem of its own, mounted below the folder."""
    image, mount = folder / "disk.img", folder / "m"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(mebibytes * 2**20)
    _run("mkfs.ext4", "-q", "-F", "-m", "0", "-N", "1024", str(image))
    _run("mount", "-o", "loop", str(image), str(mount))
    try:
        yield mount
    finally:
        _run("umount", "-l", str(mount))
        image.unlink()


@contextmanager
def _holding(code: str, count: int) -> Iterator[None]:
    """Run code that takes something, and hold it until told to let go."""
    script = f"{code}\nprint('held', flush=True)\nsys.stdin.read()\nimport os; os._exit(0)"
    command = [sys.executable, "-c", script, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if not process.stdout or process.stdout.readline() != "held\n":
            raise RuntimeError(f"could not take {count}")
        yield


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
