"""fake-kubelet beside a real kubelet on one machine: the same figures of the node, in the same words."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.parity.scrape import LACKING, Page, Served, shape, side_by_side


class Noise(NamedTuple):
    """How far two good measurements of the same thing may be apart."""

    names: str
    share: float  # of the kubelet's value
    absolute: float
    reason: str


MIB = 2**20
NOISE = (
    Noise(r"(container|node)_cpu_\w+_seconds_total", 0.0, 4.0, "CPU time goes on: two cores for two seconds"),
    Noise(r"container_last_seen", 0.0, 5.0, "the time of asking"),
    Noise(r"(container|node)_memory_\w*(bytes|cache|rss|usage|file)", 0.1, 64 * MIB, "the machine works"),
    Noise(r"container_memory_failures_total", 0.1, 1000, "page faults go on"),
    Noise(r"container_fs_(usage_bytes|inodes_free)", 0.02, 64 * MIB, "files come and go"),
    Noise(r"container_fs_(\w*reads|\w*writes|io|read|write)_\w+", 0.1, 5000, "the disk works"),
    Noise(r"container_network_\w+", 0.1, MIB, "packets come and go"),
    Noise(r"container_processes", 0.3, 20, "processes come and go"),
    Noise(r"container_oom_events_total", 0.0, 1000, "ours counts since boot, a kubelet's since it started"),
)


class Measured(NamedTuple):
    """All that one of the two said, at about the same moment."""

    summary: dict[str, Any]
    brief: dict[str, Any]
    resource: Page
    cadvisor: Page


@pytest.fixture(scope="module")
def measured(
    root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Measured, Measured]]:
    """Kubelet and fake-kubelet while every core burns, so that a rate is the same over whatever seconds they take."""
    if not root_version(HostFiles(Path("/"))):
        pytest.skip("in a container a kubelet takes the container's cgroup for the machine; we tell of the machine")
    folder = tmp_path_factory.mktemp("k")
    with ExitStack() as running:
        for core in range(os.cpu_count() or 1):
            burner = Process(
                f"burner-{core}", ["nice", "-n19", sys.executable, "-c", "while True: pass"], log=folder / "burner.log"
            )
            burner.start()
            running.callback(burner.stop)
        kubelet, ours = running.enter_context(side_by_side(control_plane, folder))
        _until_fresh(kubelet)
        for _ in range(4):
            ours.summary()  # so that our rate is over the same seconds as the kubelet's
            _until_fresh(kubelet)
            both = _measure(kubelet), _measure(ours)
            if _cores(both[0]) == pytest.approx(os.cpu_count(), rel=0.1):
                break  # else it was held up between time and figures: 2.5 of two cores have been seen
        yield both


def _cores(told: Measured) -> float:
    cores: float = told.summary["node"]["cpu"]["usageNanoCores"] / 1e9
    return cores


def _until_fresh(kubelet: Served) -> None:
    """Wait for the next measurement of a kubelet, which makes one in 10 to 15 s."""
    before = eventually(lambda: _measured_at(kubelet), within=40)
    eventually(lambda: _measured_at(kubelet) != before, within=30)


def _measured_at(kubelet: Served) -> int | None:
    return kubelet.page("/metrics/resource").numbers["node_cpu_usage_seconds_total"].timestamp_ms


def _measure(kubelet: Served) -> Measured:
    return Measured(
        kubelet.summary(),
        kubelet.summary("?only_cpu_and_memory=true"),
        kubelet.page("/metrics/resource"),
        kubelet.page("/metrics/cadvisor"),
    )


def test_the_summary_has_the_same_keys(measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = measured
    assert shape(ours.summary) == shape(kubelet.summary)
    assert list(ours.summary["node"]) == list(kubelet.summary["node"])


def test_a_summary_of_cpu_and_memory_has_the_same_keys(measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = measured
    assert shape(ours.brief) == shape(kubelet.brief)
    assert ours.brief["node"]["startTime"] == kubelet.brief["node"]["startTime"]


def test_burning_cores_are_seen_alike(measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = (_cores(told) for told in measured)
    assert ours == pytest.approx(kubelet, rel=0.15)
    assert ours > 0.7 * (os.cpu_count() or 1)


def test_the_summary_tells_the_same_storage_and_limits(measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = (told.summary["node"] for told in measured)
    assert ours["startTime"] == kubelet["startTime"]
    assert ours["rlimit"]["maxpid"] == kubelet["rlimit"]["maxpid"]
    assert ours["rlimit"]["curproc"] == pytest.approx(kubelet["rlimit"]["curproc"], rel=0.3)
    for storage, theirs in ((ours["fs"], kubelet["fs"]), (ours["runtime"]["imageFs"], kubelet["runtime"]["imageFs"])):
        assert (storage["capacityBytes"], storage["inodes"]) == (theirs["capacityBytes"], theirs["inodes"])
        assert storage["usedBytes"] == pytest.approx(theirs["usedBytes"], rel=0.05)
        assert storage["availableBytes"] == pytest.approx(theirs["availableBytes"], rel=0.05)
    assert ours["memory"]["availableBytes"] == pytest.approx(kubelet["memory"]["availableBytes"], rel=0.05)


@pytest.mark.parametrize("page", ["resource", "cadvisor"])
def test_the_pages_have_the_same_names_types_texts_and_labels(page: str, measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = (_of_the_node(getattr(told, page)) for told in measured)
    assert ours.families == {name: said for name, said in kubelet.families.items() if name not in LACKING}
    assert set(ours.numbers) == {name for name in kubelet.numbers if _name(name) not in LACKING}


@pytest.mark.parametrize("page", ["resource", "cadvisor"])
def test_the_same_numbers_have_a_timestamp(page: str, measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = (_of_the_node(getattr(told, page)).numbers for told in measured)
    for name, number in ours.items():
        assert (number.timestamp_ms is None) == (kubelet[name].timestamp_ms is None), name


@pytest.mark.parametrize("page", ["resource", "cadvisor"])
def test_the_numbers_are_the_same_within_noise(page: str, measured: tuple[Measured, Measured]) -> None:
    kubelet, ours = (_of_the_node(getattr(told, page)).numbers for told in measured)
    apart = [
        f"{name}: kubelet {kubelet[name].value}, fake-kubelet {number.value}"
        for name, number in ours.items()
        if number.value != pytest.approx(kubelet[name].value, **_tolerance(name))
    ]
    assert not apart, "\n".join(apart)


def _tolerance(name: str) -> dict[str, float]:
    noise = next((noise for noise in NOISE if re.fullmatch(noise.names, _name(name))), None)
    return {"rel": noise.share, "abs": noise.absolute} if noise else {"rel": 0.0, "abs": 0.0}


def _name(number: str) -> str:
    return number.partition("{")[0]


def _of_the_node(page: Page) -> Page:
    """Without other cgroups, and without mounts other than the root's, which come and go on a machine of tests."""
    root = next(partition.device for partition in psutil.disk_partitions() if partition.mountpoint == "/")
    numbers = {
        name: number
        for name, number in page.numbers.items()
        if ("id=" not in name or 'id="/"' in name) and ("device=" not in name or f'device="{root}"' in name)
    }
    names = {_name(number) for number in numbers}
    return Page({name: said for name, said in page.families.items() if name in names}, numbers)


def test_the_moment_of_measuring_is_now(measured: tuple[Measured, Measured]) -> None:
    _, ours = measured
    at = ours.resource.numbers["node_cpu_usage_seconds_total"].timestamp_ms
    assert at is not None
    assert 0 <= time.time() - at / 1000 < 30
