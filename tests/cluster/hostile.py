"""A working directory that belongs to somebody else: each module that a Python process may want is there, as a trap."""

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

TRAP = "open({marker!r}, 'a').write(__name__ + '\\n')\n"


class HostileDirectory:
    """Files that leave a mark when somebody imports or runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._marker = folder / "hostile", folder / "sprung"
        self.folder.mkdir()
        trap = TRAP.format(marker=str(self._marker))
        for name in {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize"}:
            if name.isidentifier():
                (self.folder / f"{name}.py").write_text(trap)
        for package in ("agent", "cryptography"):
            (self.folder / f"{package}.py").unlink(missing_ok=True)
            (self.folder / package).mkdir()
            for module in ("__init__", "__main__"):
                (self.folder / package / f"{module}.py").write_text(trap)

    @property
    def sprung(self) -> list[str]:
        """The traps that somebody went into."""
        return self._marker.read_text().split() if self._marker.exists() else []
