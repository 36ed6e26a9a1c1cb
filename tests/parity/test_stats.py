"""fake-kubelet beside a real kubelet on one machine: the same figures of the node, in the same words."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubelet_races import BOOT_MINUTE_SECONDS
from tests.cluster.waiting import eventually
from tests.parity.scrape import LACKING, Page, Served, shape, side_by_side

pytestmark = pytest.mark.slow

_LEAST_ROUNDS = 3  # a rate of ours may go back to a moment that only the daemon knows; by then it does not any more
_CPU = "node_cpu_usage_seconds_total"


class Noise(NamedTuple):
    """How far two good measurements of the same thing may be apart, beyond what changed from the first to the last."""

    names: str
    share: float  # of the kubelet's value
    absolute: float
    reason: str


MIB = 2**20
NOISE = (
    Noise(r"(container|node)_cpu_\w+_seconds_total", 0.0, 0.1, "the kernel counts the kinds of CPU time in ticks"),
    Noise(r"container_start_time_seconds|summary startTime", 0.0, BOOT_MINUTE_SECONDS, "a race in a kubelet"),
    Noise(r"container_last_seen", 0.0, 1.0, "whole seconds"),
    Noise(r"(container|node)_memory_\w*(bytes|cache|rss|usage|file)", 0.1, 64 * MIB, "the machine works"),
    Noise(r"container_memory_failures_total", 0.1, 1000, "page faults go on"),
    Noise(r"container_fs_(usage_bytes|inodes_free)", 0.02, 64 * MIB, "files come and go"),
    Noise(r"container_fs_(\w*reads|\w*writes|io|read|write)_\w+", 0.1, 5000, "the disk works"),
    Noise(r"container_network_\w+", 0.1, MIB, "packets come and go"),
    Noise(r"container_processes", 0.3, 20, "processes come and go"),
    Noise(r"container_oom_events_total", 0.0, 1000, "ours counts since boot, a kubelet's since it started"),
    Noise(r"summary rlimit curproc", 0.3, 20, "processes come and go"),
    Noise(r"summary (fs|runtime imageFs) (used|available)Bytes", 0.05, 0.0, "files come and go"),
    Noise(r"summary memory availableBytes", 0.05, 0.0, "the machine works"),
)
_OF_THE_MOMENT = (
    ("rlimit", "curproc"),
    ("memory", "availableBytes"),
    *((*place, name) for place in (("fs",), ("runtime", "imageFs")) for name in ("usedBytes", "availableBytes")),
)


class Asked(NamedTuple):
    """An answer's CPU time, and between which moments it was asked for and came."""

    cpu_seconds: float
    began: float
    ended: float


class Measured(NamedTuple):
    """All that one of the two said, one after the other."""

    summary: dict[str, Any]
    brief: dict[str, Any]
    resource: Page
    cadvisor: Page
    asked: Sequence[Asked]  # of the summary, the brief one and the resource page

    @property
    def cores(self) -> float:
        """The rate that the summary tells."""
        cores: float = self.summary["node"]["cpu"]["usageNanoCores"] / 1e9
        return cores

    @property
    def measured_at(self) -> int:
        """The time stamp of the resource page."""
        at = self.resource.numbers[_CPU].timestamp_ms
        assert at is not None
        return at


class Round(NamedTuple):
    """What a kubelet measured between two measurements of ours: what only grows lies between them."""

    before: Measured
    kubelet: Measured
    after: Measured


@pytest.fixture(scope="module")
def rounds(root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Round]]:
    """Rounds of measurements, until every number was once the same on both: on a busy machine not all are at once."""
    if not root_version(HostFiles(Path("/"))):
        pytest.skip("in a container a kubelet takes the container's cgroup for the machine; we tell of the machine")
    done: list[Round] = []
    with side_by_side(control_plane, tmp_path_factory.mktemp("k")) as (kubelet, ours):

        def is_enough() -> bool:
            done.append(_round(kubelet, ours))
            agreed = all(any(_agrees(one, look) for one in done) for look in _LOOKS)
            return len(done) >= _LEAST_ROUNDS and agreed and not _apart(done) and _has_own_rate(done)

        with suppress(AssertionError):  # the tests tell what differs
            eventually(is_enough, within=240)
        yield done


def _round(kubelet: Served, ours: Served) -> Round:
    before, last = _measure(ours), _measured_at(kubelet)
    eventually(lambda: _measured_at(kubelet) != last)  # a kubelet measures every 10 to 15 s, and not when it is asked
    return Round(before, _measure(kubelet), _measure(ours))


def _measured_at(kubelet: Served) -> int | None:
    return kubelet.page("/metrics/resource").numbers[_CPU].timestamp_ms


def _measure(served: Served) -> Measured:
    asked: list[Asked] = []

    def ask(question: Callable[[], Any], cpu_seconds: Callable[[Any], float]) -> Any:
        began = time.time()
        answer = question()
        asked.append(Asked(cpu_seconds(answer), began, time.time()))
        return answer

    def of_summary(answer: dict[str, Any]) -> float:
        return float(answer["node"]["cpu"]["usageCoreNanoSeconds"]) / 1e9

    return Measured(
        ask(served.summary, of_summary),
        ask(lambda: served.summary("?only_cpu_and_memory=true"), of_summary),
        ask(lambda: served.page("/metrics/resource"), lambda page: float(page.numbers[_CPU].value)),
        served.page("/metrics/cadvisor"),
        asked,
    )


def _has_own_rate(rounds: Sequence[Round]) -> bool:
    """Whether a rate of ours was what the CPU time grew by between two answers, in the time between them."""
    ours = [measured for one in rounds for measured in (one.before, one.after)]
    return any(
        _is_quotient(measured.cores, earlier, measured.asked[0])
        for index, measured in enumerate(ours)
        for told in ours[:index]
        for earlier in told.asked
    )


def _is_quotient(rate: float, earlier: Asked, now: Asked) -> bool:
    grown, slack = now.cpu_seconds - earlier.cpu_seconds, 1e-3
    most, least = now.ended - earlier.began, now.began - earlier.ended
    return least > 0 and grown / most - slack <= rate <= grown / least + slack


def _apart(rounds: Sequence[Round]) -> dict[str, list[tuple[float, float, float]]]:
    """The numbers that differ in all rounds: what we told before, what the kubelet told, and what we told then."""
    seen = [tuple(_numbers(measured) for measured in one) for one in rounds]
    names = set.intersection(*(set(numbers) for one in seen for numbers in one))
    tables = {name: [(one[0][name], one[1][name], one[2][name]) for one in seen] for name in names}
    return {name: rows for name, rows in tables.items() if not any(_is_between(name, *row) for row in rows)}


def _numbers(measured: Measured) -> dict[str, float]:
    node = measured.summary["node"]
    found = {"summary startTime": datetime.fromisoformat(measured.brief["node"]["startTime"]).timestamp()}
    for *place, name in _OF_THE_MOMENT:
        part = node
        for key in place:
            part = part[key]
        found[" ".join(("summary", *place, name))] = part[name]
    for page in (measured.resource, measured.cadvisor):
        found |= {name: number.value for name, number in _of_the_node(page).numbers.items()}
    return found


def _is_between(name: str, before: float, kubelet: float, after: float) -> bool:
    noise = next((noise for noise in NOISE if re.fullmatch(noise.names, _name(name))), None)
    slack = max(noise.share * abs(kubelet), noise.absolute) if noise else 0.0
    return min(before, after) - slack <= kubelet <= max(before, after) + slack


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


def _lines(page: Page) -> tuple[dict[str, tuple[str, str]], dict[str, bool]]:
    """Names, types and texts, and which labels there are, with a time stamp or without."""
    found = _of_the_node(page)
    families = {name: said for name, said in found.families.items() if name not in LACKING}
    stamped = {name: number.timestamp_ms is not None for name, number in found.numbers.items()}
    return families, {name: has_stamp for name, has_stamp in stamped.items() if _name(name) not in LACKING}


def _summary_shape(measured: Measured) -> Any:
    return shape(measured.summary), list(measured.summary["node"])


def _brief_shape(measured: Measured) -> Any:
    return shape(measured.brief)


def _resource_lines(measured: Measured) -> Any:
    return _lines(measured.resource)


def _cadvisor_lines(measured: Measured) -> Any:
    return _lines(measured.cadvisor)


_LOOKS = (_summary_shape, _brief_shape, _resource_lines, _cadvisor_lines)


def _agrees(one: Round, look: Callable[[Measured], Any]) -> bool:
    return bool(look(one.kubelet) == look(one.after))


def _last(rounds: Sequence[Round]) -> tuple[Measured, Measured]:
    return rounds[-1].kubelet, rounds[-1].after


@pytest.mark.parametrize("look", _LOOKS, ids=lambda look: look.__name__)
def test_keys_names_types_texts_and_labels_are_the_same(look: Callable[[Measured], Any], rounds: list[Round]) -> None:
    """Once at least: network interfaces come and go on a machine of tests."""
    one = next((one for one in rounds if _agrees(one, look)), rounds[-1])
    assert look(one.after) == look(one.kubelet)


def test_the_summary_tells_the_same_storage_and_limits(rounds: list[Round]) -> None:
    kubelet, ours = (measured.summary["node"] for measured in _last(rounds))
    assert ours["startTime"] == kubelet["startTime"]
    assert ours["rlimit"]["maxpid"] == kubelet["rlimit"]["maxpid"]
    for storage, theirs in ((ours["fs"], kubelet["fs"]), (ours["runtime"]["imageFs"], kubelet["runtime"]["imageFs"])):
        assert (storage["capacityBytes"], storage["inodes"]) == (theirs["capacityBytes"], theirs["inodes"])


def test_the_cores_in_use_are_cpu_time_by_time(rounds: list[Round]) -> None:
    assert _has_own_rate(rounds)


def test_every_number_has_been_the_same(rounds: list[Round]) -> None:
    assert all(_CPU in _numbers(measured) for one in rounds for measured in one)
    assert _apart(rounds) == {}


def test_the_moment_of_measuring_is_that_of_asking(rounds: list[Round]) -> None:
    asked = rounds[-1].after.asked[-1]
    assert int(asked.began * 1e3) <= rounds[-1].after.measured_at <= asked.ended * 1e3
