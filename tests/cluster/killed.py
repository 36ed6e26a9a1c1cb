"""`python -m tests.cluster.killed`: fake-kubelet, killed right before its KILL_AT-th change of a file in KILL_IN.

Python tells of each change before it happens (PEP 578), so no line of the program has to know about this.
"""

import os
import signal
import sys
from typing import Any

_CHANGES = {"open", "os.rename", "os.symlink", "os.remove", "os.mkdir"}


def watch(left: int, folder: str) -> None:
    """Count changes down, and end at zero as a power cut would."""

    def on_event(event: str, args: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in _CHANGES or not _is_change(event, args, folder):
            return
        left -= 1
        if left == 0:
            os.write(2, f"killed before {event} {_name(event, args)}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(on_event)


def _name(event: str, args: tuple[Any, ...]) -> str:
    """The file that was about to change; of a link, its own name."""
    return os.path.basename(os.fspath(args[1] if event == "os.symlink" else args[0]))  # noqa: PTH119  text is enough


def _is_change(event: str, args: tuple[Any, ...], folder: str) -> bool:
    if event == "open":
        path, _, flags = args
        return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(folder) and bool(flags & os.O_CREAT)
    return any(isinstance(arg, str | os.PathLike) and os.fspath(arg).startswith(folder) for arg in args)


if __name__ == "__main__":
    watch(int(os.environ["KILL_AT"]), os.environ["KILL_IN"])
    from agent.cli import main

    main()
