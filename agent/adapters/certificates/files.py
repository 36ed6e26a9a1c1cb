"""Files that are there as a whole or not at all, and private ones that nobody else may read."""

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
    """Write a file so that a power cut leaves the old one or the new one, and never half of either.

    The draft has always the same name: what a crash leaves of it is gone with the next attempt. What `check` finds
    wrong with it never gets the file's name.
    """
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = draft or path.with_name(f".{path.name}.draft")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor is no path
            os.fchmod(descriptor, mode)  # whatever the umask, and whatever a draft of an earlier crash had
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


def sync_folder(folder: Path) -> None:
    """Have the disk know a folder's names, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
