"""Real shortage of memory, disk and processes, made for a while and taken back."""

import asyncio
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from agent.adapters.host import LinuxHost
from agent.core.pressure import signal_observations
from tests.cluster.command import run
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.settings import HostConfig

KINDS = ("MemoryPressure", "PIDPressure", "DiskPressure")
_MEMORY, _TASKS = "memory.available", "pid.available"
_UNITS = {_MEMORY: 2**26, _TASKS: 1}  # what can be taken and given back at once
_STEPS = {_MEMORY: 2**30, _TASKS: 1000}
_LAST_STEP = 2**28  # to take memory needs time: most of what may be taken goes before the clock starts
# A child that holds as many units as a file says, and says in another how many it has.
_HOLD = """
import mmap, pathlib, sys, threading, time
what, unit = sys.argv[1], int(sys.argv[2])
wanted, held = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
units, gate = [], threading.Semaphore(0)
threading.stack_size(65536)
def take():
    if what == "memory.available":
        return mmap.mmap(-1, unit, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
    thread = threading.Thread(target=gate.acquire, daemon=True)
    thread.start()
    return thread
def give_back(one):
    one.close() if what == "memory.available" else gate.release()
while True:
    count = int(wanted.read_text() or len(units))
    while len(units) < count: units.append(take())
    while len(units) > count: give_back(units.pop())
    held.write_text(str(len(units)))
    time.sleep(0.05)
"""


class Supply:
    """Something of which the machine has only so much, kept above or below a limit whatever else the machine does.

    It holds some of it from the beginning, so that it can give back what others take. A limit is one step below what
    is there at first, and a shortage one step below the limit.
    """

    def __init__(self, signal: str, folder: Path) -> None:
        self.signal, self._unit = signal, _UNITS[signal]
        self._wanted, self._held = folder / f"{signal}.wanted", folder / f"{signal}.held"
        self._count = self._step // self._unit
        words = [signal, str(self._unit), str(self._wanted), str(self._held)]
        self._child = Process(f"hold {signal}", [sys.executable, "-c", _HOLD, *words], log=folder / f"{signal}.log")
        self.limit = self._goal = 0
        self._over, self._turn = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    @property
    def _step(self) -> int:
        return _STEPS[self.signal]

    def __enter__(self) -> Self:
        self._hold()
        self._child.start()
        eventually(self._is_held)
        self.limit = _left()[self.signal] - self._step
        self._goal = self.limit + self._step
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._child.kill()

    def reach(self, above_limit: int) -> None:
        """Return when there is about so much more than the limit, or less than it; from then on it is kept so."""
        with self._turn:
            self._goal = self.limit + above_limit
            eventually(self._is_held)
            self._adjust(_left()[self.signal])
            eventually(self._is_held)

    def plenty(self) -> None:
        """A step above the limit, as in the beginning."""
        self.reach(self._step)

    def shortage(self) -> None:
        """A step below the limit."""
        self.reach(-self._step)

    def _keep(self) -> None:
        """Take and give back while others do: not for each trifle, and only in the direction that matters."""
        while not self._over.wait(0.2):
            with self._turn:
                left = _left()[self.signal]
                too_much, too_little = left - self._goal > self._step // 2, self._goal - left > self._step // 2
                if self._is_held() and (too_much if self._goal < self.limit else too_little):
                    self._adjust(left)

    def _adjust(self, left: int) -> None:
        self._count = max(0, self._count + (left - self._goal) // self._unit)
        self._hold()

    def _hold(self) -> None:
        new = self._wanted.with_suffix(".new")
        new.write_text(str(self._count))
        new.rename(self._wanted)

    def _is_held(self) -> bool:
        return self._held.exists() and self._held.read_text() == str(self._count)


class Supplies:
    """Memory and tasks, and a disk beside them: eviction thresholds for all, and a shortage of all."""

    def __init__(self, folder: Path, disk: Path) -> None:
        self._memory, self._tasks = Supply(_MEMORY, folder), Supply(_TASKS, folder)
        self._disk, self._stack = disk, ExitStack()

    def __enter__(self) -> Self:
        for supply in (self._memory, self._tasks):
            self._stack.enter_context(supply)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def thresholds(self) -> Mapping[str, str]:
        """Thresholds that are not crossed while there is no shortage."""
        limits = {supply.signal: str(supply.limit) for supply in (self._memory, self._tasks)}
        return limits | {"nodefs.available": "20%", "nodefs.inodesFree": "20%"}

    @contextmanager
    def shortage(self) -> Iterator[dict[str, float]]:
        """Less of everything than the thresholds ask for; gives a moment just before each of them is crossed."""
        since = {}
        try:
            self._memory.reach(_LAST_STEP)
            since["MemoryPressure"] = time.monotonic()
            self._memory.shortage()
            since["PIDPressure"] = time.monotonic()
            self._tasks.shortage()
            since["DiskPressure"] = time.monotonic()
            with filled_disk(self._disk, leave_bytes=2**20):
                yield since
        finally:
            for supply in (self._memory, self._tasks):
                supply.plenty()


@contextmanager
def filled_disk(folder: Path, *, leave_bytes: int) -> Iterator[None]:
    """A filesystem with almost nothing left."""
    ballast = folder / "ballast"

    def fill() -> bool:  # who else writes there may be faster: then once more
        stat = os.statvfs(folder)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, stat.f_frsize * stat.f_bavail - leave_bytes)
        return True

    try:
        eventually(fill)
        yield
    finally:
        ballast.unlink()


@contextmanager
def used_inodes(folder: Path, *, leave: int) -> Iterator[None]:
    """A filesystem with space, but with almost no inodes left."""
    crowd = folder / "crowd"
    crowd.mkdir()
    try:
        for number in range(os.statvfs(folder).f_favail - leave):
            (crowd / str(number)).touch()
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
    run(["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "1024", str(image)])
    run(["mount", "-o", "loop", str(image), str(mount)])
    try:
        yield mount
    finally:
        run(["umount", "-l", str(mount)])
        image.unlink()


def _left() -> dict[str, int]:
    seen = signal_observations(asyncio.run(LinuxHost(HostConfig()).snapshot()))
    return {signal: observation.available for signal, observation in seen.items()}
