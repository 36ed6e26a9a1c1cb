"""Real shortage of memory, disk and processes, made for a while and taken back."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agent.adapters.host import LinuxHost
from agent.core.config import Config
from agent.core.eviction import observe

KINDS = ("MemoryPressure", "PIDPressure", "DiskPressure")
# A limit is so much below what is there at first, and a shortage so much below the limit: what else comes and goes on
# the machine should not matter.
_MEMORY_STEP, _TASK_STEP = 2**30, 1000
_LAST_STEP = 2**28  # to take memory needs time: most of what may be taken goes before the clock starts
_ALLOCATE = (
    "import sys, mmap\n"
    "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE\n"
    "block = mmap.mmap(-1, int(sys.argv[1]), flags=flags)"
)
_THREADS = (
    "import sys, threading\n"
    "threading.stack_size(65536)\n"
    "done = threading.Event()\n"
    "for _ in range(int(sys.argv[1])): threading.Thread(target=done.wait, daemon=True).start()"
)


def limits() -> dict[str, str]:
    """Eviction thresholds that are not crossed now, nor by the start of a few processes."""
    left = _left()
    return {
        "memory.available": str(left["memory.available"] - _MEMORY_STEP),
        "pid.available": str(left["pid.available"] - _TASK_STEP),
        "nodefs.available": "20%",
        "nodefs.inodesFree": "20%",
    }


@contextmanager
def shortage(disk: Path, thresholds: Mapping[str, str]) -> Iterator[dict[str, float]]:
    """Less of everything than the thresholds ask for; gives a moment just before each of them is crossed."""
    left = _left()
    above = {signal: left[signal] - int(thresholds[signal]) for signal in ("memory.available", "pid.available")}
    since = {}
    with ExitStack() as burden:
        burden.enter_context(allocated_memory(above["memory.available"] - _LAST_STEP))
        since["MemoryPressure"] = time.monotonic()
        burden.enter_context(allocated_memory(_LAST_STEP + _MEMORY_STEP))
        since["PIDPressure"] = time.monotonic()
        burden.enter_context(waiting_threads(above["pid.available"] + _TASK_STEP))
        since["DiskPressure"] = time.monotonic()
        burden.enter_context(filled_disk(disk, leave_bytes=2**20))
        yield since


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


def _left() -> dict[str, int]:
    seen = observe(asyncio.run(LinuxHost(Config(node_name="n")).snapshot()))
    return {signal: observation.available for signal, observation in seen.items()}


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
