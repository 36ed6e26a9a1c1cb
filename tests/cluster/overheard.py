"""`python -m tests.cluster.overheard`: fake-kubelet; the processes it starts and the files it opens are in OVERHEARD.

Anybody on the machine can read a command line, as `ps` does, if only for a moment. Python tells of each child, and of
each file, before it happens (PEP 578), so none is missed, and no line of the program has to know about this.
"""

import os
import sys
from pathlib import Path
from typing import Any


def overhear(notes: Path) -> None:
    """Write down each command line, and the path of each file beside the notes."""
    log = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            words = args[1] if isinstance(args[1], list | tuple) else [args[1]]
            os.write(log, f"exec {' '.join(os.fsdecode(word) for word in words)}\n".encode())
        elif event == "open" and str(args[0]).startswith(f"{notes.parent}/"):
            os.write(log, f"open {args[0]}\n".encode())

    sys.addaudithook(on_event)


if __name__ == "__main__":
    overhear(Path(os.environ["OVERHEARD"]))
    from agent.cli import main

    main()
