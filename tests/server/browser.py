"""A headless Chromium: pages as people see them."""

import shutil
from pathlib import Path

from tests.cluster.command import run
from tests.cluster.lacking import lacking

_QUIET = (
    "--headless=new",
    "--no-sandbox",  # as root it has no other way
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)


class Browser:
    """Looks at one page at a time, each time as a stranger."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program, self._directory = program, directory

    @classmethod
    def found(cls, directory: Path) -> "Browser":
        """The Chromium of this machine; without one the test is skipped, or fails in CI, where that would hide much."""
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            lacking("no browser to look with: apt-get install chromium fonts-dejavu-core")
        return cls(program, directory)

    def dom(self, url: str, *, after_seconds: float = 0.0) -> str:
        """The page as it is once it has been there for so long."""
        options = [f"--virtual-time-budget={round(after_seconds * 1000)}"] if after_seconds else []
        return self._run(*options, "--dump-dom", url)

    def screenshot(self, url: str, name: str, *, is_dark: bool = False, size: tuple[int, int] = (900, 1400)) -> bytes:
        """A PNG of the page, for people who like it light or dark."""
        path, scheme = self._directory / name, f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"
        self._run(scheme, f"--window-size={size[0]},{size[1]}", f"--screenshot={path}", url)
        return path.read_bytes()

    def _run(self, *arguments: str) -> str:
        profile = f"--user-data-dir={self._directory / 'profile'}"
        argv = [self._program, *_QUIET, profile, *arguments]
        return run(argv)
