"""Write files atomically, and readable by their owner only."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def write_whole(
    path: Path,
    text: str,
    *,
    mode: int = 0o600,
    draft: Path | None = None,
    check: Callable[[Path], None] = lambda _: None,
) -> None:
    """Write a file so that a power cut leaves the old or the new content, and never a part of it.

    The draft always has the same name, so the next attempt removes what a crash left. `check` raises ValueError or
    OSError for a draft that must not replace the file.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = draft or path.with_name(f".{path.name}.draft")
    descriptor = _create(draft, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor is no path
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        check(draft)
        draft.replace(path)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync_folder(path.parent)


def _create(draft: Path, mode: int) -> int:
    """Create a file; remove whatever has its name first: a link, a FIFO or a file that others may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(draft, flags, mode)
    except FileExistsError:
        draft.unlink()
        return os.open(draft, flags, mode)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
