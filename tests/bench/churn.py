"""Pods that come and go on one node: what stays behind in the process.

`python -m tests.bench.churn --pods 10000` prints a table in Markdown. The API server is a real one; each batch is bound
to the node, runs, is deleted and gone before the next one comes.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.bench.pods import delete_all, names, ours, pods, roomy, tell, wait_until_ready
from tests.bench.proc import footprint
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

_WITHIN_SECONDS = 180.0
_ROWS = 10


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, roomy(Path(folder)) as plane:
        name, start, stop = ours(plane, Path(folder))
        pid = start()
        wait_until_ready(plane, name)
        rows, began = [_row(0, 0, pid)], time.monotonic()
        for first in range(0, options.pods, options.batch):
            done = first + options.batch
            _churn(plane, name, range(first, done))
            rows.append(_row(done, time.monotonic() - began, pid))
            tell(rows[-1])
        stop()
    print("| pods so far | after | RSS | of it anonymous | threads | open files |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows[:: max(1, len(rows) // _ROWS)]))


def _churn(plane: ControlPlane, name: str, numbers: range) -> None:
    plane.kubectl("create", "-f", "-", input=pods(name, numbers))
    eventually(lambda: len(names(plane, name, phase="Running")) == len(numbers), within=_WITHIN_SECONDS, every=0.5)
    delete_all(plane, name)
    eventually(lambda: not names(plane, name), within=_WITHIN_SECONDS, every=0.5)


def _row(done: int, seconds: float, pid: int) -> str:
    now = footprint(pid)
    sizes = f"{now.rss_kib / 1024:.1f} MiB | {now.anonymous_kib / 1024:.1f} MiB"
    return f"| {done} | {seconds:.0f} s | {sizes} | {now.threads} | {now.open_files} |"


if __name__ == "__main__":
    main()
