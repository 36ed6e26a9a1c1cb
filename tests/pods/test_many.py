"""As many pods as a large node has, brought to it by a real scheduler."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bench.pods import delete_all, names, ours, pods, roomy, wait_until_ready
from tests.cluster.waiting import eventually

COUNT = 500


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("binaries")
def test_five_hundred_pods_run_soon_after_they_were_scheduled(
    tmp_path: Path, figure: Callable[[str, str], None]
) -> None:
    with roomy(tmp_path) as plane, ExitStack() as started:
        name, start, stop = ours(plane, tmp_path)
        started.callback(stop)
        start()
        wait_until_ready(plane, name)
        plane.kubectl("create", "-f", "-", input=pods(name, range(COUNT), bound=False))
        bound = ("get", "pods", f"--field-selector=spec.nodeName={name}", "--output=name")
        eventually(lambda: len(plane.kubectl(*bound).split()) == COUNT, within=120)
        began = time.monotonic()
        eventually(lambda: len(names(plane, name, phase="Running")) == COUNT, within=60)
        figure(f"{COUNT} pods Running", f"{time.monotonic() - began:.1f} s after the last one was scheduled")
        found = json.loads(plane.kubectl("get", "pods", "--output=json"))["items"]
        assert len({pod["status"]["podIP"] for pod in found}) == COUNT
        delete_all(plane, name)
        eventually(lambda: not names(plane, name), within=120, every=0.5)
