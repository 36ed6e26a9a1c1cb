"""A folder to write to, over others that stay as they are."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.command import run


@contextmanager
def layer(directory: Path, below: Sequence[Path]) -> Iterator[Path]:
    """Where to write; what was written is in the folder `upper` afterwards."""
    upper, work, root = (directory / name for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir(parents=True)
    lower = ":".join(str(layer) for layer in below)
    run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", str(root)])
    try:
        yield root
    finally:
        run(["umount", "--lazy", str(root)], check=False)  # a machine that was just killed may still be dying
