"""The host's small text files, below wherever its root is mounted."""

from pathlib import Path


class HostFiles:
    """Reads files by their path on the host, such as `proc/meminfo`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, name: str) -> Path:
        """Where a file of the host is for us; `name` may start with a slash."""
        return self._root / name.lstrip("/")

    def text(self, name: str) -> str:
        """The content without white space around it."""
        return self.path(name).read_text("utf-8").strip("\n\0 ")

    def number(self, name: str) -> int:
        """A file that holds one number."""
        return int(self.text(name))

    def lines(self, name: str) -> list[str]:
        """The lines; none where there is no such file."""
        try:
            return self.path(name).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []

    def table(self, name: str) -> dict[str, int]:
        """A file of `name value` or `name: value kB` lines."""
        fields = (line.replace(":", " ").split(maxsplit=2) for line in self.lines(name))
        return {field[0]: int(field[1]) for field in fields if len(field) > 1}

    def first(self, names: tuple[str, ...]) -> str:
        """The content of the first file that can be read; nothing where none can."""
        for name in names:
            try:
                return self.text(name)
            except OSError:
                continue
        return ""
