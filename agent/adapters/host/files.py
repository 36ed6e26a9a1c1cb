"""The host's small text files, below wherever its root is mounted."""

import os
from pathlib import Path

_MOST_BYTES = 1 << 20  # at a time


class HostFiles:
    """Reads files by their path on the host, such as `proc/meminfo`; a few are read every second, so it is quick."""

    def __init__(self, root: Path) -> None:
        self._root = str(root).rstrip("/")

    def path(self, name: str) -> Path:
        """Where a file of the host is for us; `name` may start with a slash."""
        return Path(self._name(name))

    def exists(self, name: str) -> bool:
        """Whether there is such a file or folder."""
        return os.access(self._name(name), os.F_OK)

    def text(self, name: str) -> str:
        """The content without white space around it."""
        file = os.open(self._name(name), os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The kernel hands out most of its lists a page at a time, whatever it is asked for.
            return b"".join(iter(lambda: os.read(file, _MOST_BYTES), b"")).decode("utf-8", "replace").strip("\n\0 ")
        finally:
            os.close(file)

    def number(self, name: str) -> int:
        """A file that holds one number."""
        return int(self.text(name))

    def lines(self, name: str) -> list[str]:
        """The lines; none where there is no such file."""
        try:
            return self.text(name).splitlines()
        except FileNotFoundError:
            return []

    def numbers(self, name: str, *keys: str) -> dict[str, int]:
        """Some values of a file of `key value` or `key: value kB` lines; those that it lacks are left out."""
        text = f"\n{self.text(name)}\n"
        found = {}
        for key in keys:
            for mark in (f"\n{key} ", f"\n{key}:"):
                start = text.find(mark)
                if start >= 0:
                    found[key] = int(text[start + len(mark) : text.index("\n", start + 1)].split(maxsplit=1)[0])
        return found

    def first(self, names: tuple[str, ...]) -> str:
        """The content of the first file that can be read; nothing where none can."""
        for name in names:
            try:
                return self.text(name)
            except OSError:
                continue
        return ""

    def _name(self, name: str) -> str:
        return f"{self._root}/{name.lstrip('/')}"
