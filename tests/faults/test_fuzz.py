"""10,000 answers that may be anything: nothing crashes, nothing leaks, and afterwards all is well."""

import asyncio
import ctypes
import gc
import json
import logging
import os
import ssl
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.credentials import load_credentials
from agent.adapters.kube import KubeCSINodes, KubeEvents, KubeLeases, KubeNodes, KubeSelection
from agent.adapters.kube_pods import KubePods, pods_of
from agent.adapters.lane import Lane
from agent.core.config import Config
from agent.node import Lanes, Node, PodLanes
from agent.supervisor import supervise
from tests.bench.proc import footprint
from tests.cluster.waiting import eventually
from tests.fakes import FakeHost
from tests.faults.fuzz import FuzzProxy
from tests.faults.member import Member

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]  # on a busy machine

ANSWERS = 10_000
_PARTING = 300
_HURRY = 2000  # seconds pass so many times as fast, or 10,000 answers would take hours


class HurriedClock(SystemClock):
    """The real clock, which can be made to hurry."""

    def __init__(self) -> None:
        self._times, self._passed, self._since = 1, 0.0, super().monotonic()

    def hurry(self, times: int) -> None:
        self._passed, self._since, self._times = self.monotonic(), super().monotonic(), times

    def monotonic(self) -> float:
        return self._passed + (super().monotonic() - self._since) * self._times

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._times)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        return await super().wait(event, seconds / self._times)


@pytest.fixture
async def fuzz(plane):
    tls = ssl.create_default_context(cafile=plane.ca_file)
    tls.load_cert_chain(plane.admin_cert, plane.admin_key)
    proxy = FuzzProxy(plane.url, tls, seed=int(os.environ.get("FUZZ_SEED", "5")))
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def lanes(fuzz, node_name, tmp_path):
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": fuzz.url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "any"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    credentials = await load_credentials(str(tmp_path / "kubeconfig"))
    async with AsyncExitStack() as open_lanes:
        ways = [Lane(credentials, architecture="amd64", timeout_seconds=10) for _ in range(5)]
        for way in ways:
            open_lanes.push_async_callback(way.close)
        lease, status, watch, rest, pods = ways
        yield Lanes(
            nodes=KubeNodes(rest),
            status_nodes=KubeNodes(status),
            lease_nodes=KubeNodes(lease),
            leases=KubeLeases(lease),
            csinodes=KubeCSINodes(rest),
            events=KubeEvents(rest),
            own_node=KubeSelection.node(watch, node_name),
            pods=PodLanes(pods=KubePods(pods), own_pods=pods_of(watch, node_name), events=KubeEvents(pods)),
        )


@pytest.fixture(autouse=True)
def unheard():
    """pytest keeps every record, and with it the error and the answer that was its cause: a leak of its own."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


async def reached(fuzz, count, supervisor):
    async with asyncio.timeout(300):
        while fuzz.nonsense < count:
            assert not supervisor.done(), supervisor
            await asyncio.sleep(0.05)


class Cost(NamedTuple):
    """What this process holds."""

    rss_mib: float
    objects: int
    sockets: int
    tasks: int


def cost():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator keeps back for later is nobody's
    sockets = sum(str(entry.readlink()).startswith("socket:") for entry in _open_files())
    return Cost(footprint(os.getpid()).rss_kib / 1024, len(gc.get_objects()), sockets, len(asyncio.all_tasks()))


def _open_files():
    return [entry for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]


async def test_ten_thousand_answers_that_make_no_sense(fuzz, lanes, node_name, admin):
    clock = HurriedClock()
    node = Node(config=Config(node_name=node_name), host=FakeHost(), lanes=lanes, clock=clock)
    stop = asyncio.Event()
    supervisor = asyncio.create_task(supervise(node.loops, stop, lasting=node.lasting))
    await asyncio.to_thread(_wait_until_whole, admin, node_name)
    quiet = []
    for count in (ANSWERS // 2, ANSWERS):
        clock.hurry(_HURRY)
        fuzz.wild = fuzz.asks_for_time = True
        await reached(fuzz, count, supervisor)
        fuzz.asks_for_time = False  # those who were asked to wait have done so when the fault ends
        await reached(fuzz, count + _PARTING, supervisor)
        fuzz.wild = False
        clock.hurry(1)
        await asyncio.to_thread(_wait_until_whole, admin, node_name, within=10.4)
        quiet.append(cost())  # only now: the answers under way are megabytes, and the proxy is in this process too
    stop.set()
    await supervisor
    before, after = quiet
    assert after.objects - before.objects < 0.02 * before.objects
    assert after.rss_mib - before.rss_mib < 8
    assert after.sockets - before.sockets <= 15  # five lanes, each with two ends here and one beyond the proxy
    assert after.tasks - before.tasks <= 4


def _wait_until_whole(admin, name, within=30.0):
    member, moment = Member(admin, name, None), datetime.now(UTC)
    eventually(lambda: member.renewed_at() > moment and member.is_whole(), within=within)
