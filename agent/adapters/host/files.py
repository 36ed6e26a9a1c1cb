"""The host's small text files and its filesystems, below wherever its root is mounted."""

import os
from pathlib import Path

from agent.core.model import Filesystem

_READ_BYTES = 1 << 12  # a buffer is allocated for each read, and the files are smaller


class HostFiles:
    """Reads files by their path on the host, such as `proc/meminfo`; a few are read every second, so it is quick."""

    def __init__(self, root: Path) -> None:
        self._root = str(root).rstrip("/")

    def path(self, name: str) -> Path:
        """Return the path at which this process sees a file of the host; `name` may start with a slash."""
        return Path(self._name(name))

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return os.access(self._name(name), os.F_OK)

    def text(self, name: str) -> str:
        """Return the content without white space around it."""
        file = os.open(self._name(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The kernel hands out most of its lists a page at a time, whatever it is asked for.
            return b"".join(iter(lambda: os.read(file, _READ_BYTES), b"")).decode("utf-8", "replace").strip("\n\0 ")
        finally:
            os.close(file)

    def number(self, name: str) -> int:
        """Return the number that is all the content of a file."""
        return int(self.text(name))

    def lines(self, name: str) -> list[str]:
        """Return the lines; none if there is no such file."""
        try:
            return self.text(name).splitlines()
        except FileNotFoundError:
            return []

    def numbers(self, name: str, *keys: str) -> dict[str, int]:
        """Return some values of a file of `key value` or `key: value kB` lines, without the keys that it lacks."""
        text = f"\n{self.text(name)}\n"
        values = {}
        for key in keys:
            for mark in (f"\n{key} ", f"\n{key}:"):
                start = text.find(mark)
                if start >= 0:
                    values[key] = int(text[start + len(mark) : text.index("\n", start + 1)].split(maxsplit=1)[0])
        return values

    def first(self, names: tuple[str, ...]) -> str:
        """Return the content of the first file that can be read; empty if none can."""
        for name in names:
            try:
                return self.text(name)
            except OSError:
                continue
        return ""

    def _name(self, name: str) -> str:
        return f"{self._root}/{name.lstrip('/')}"


def filesystem_of(folder: Path) -> Filesystem:
    """Return the filesystem that holds a folder, or will hold it once somebody creates it."""
    try:
        return filesystem_at(folder)
    except FileNotFoundError:
        return filesystem_of(folder.parent)


def filesystem_at(path: Path) -> Filesystem:
    """Return the filesystem at a path that exists."""
    stat = os.statvfs(path)
    return Filesystem(
        capacity_bytes=stat.f_frsize * stat.f_blocks,
        available_bytes=stat.f_frsize * stat.f_bavail,
        inodes=stat.f_files,
        inodes_free=stat.f_ffree,
        used_bytes=stat.f_frsize * (stat.f_blocks - stat.f_bfree),
    )
