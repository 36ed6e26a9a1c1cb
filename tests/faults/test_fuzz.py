"""The daemon before an API server that lies: it lives, renews its lease, and keeps its size.

`make fuzz` lies for longer, and also asserts that no lease was ever over.
"""

import asyncio
import itertools
import json
import os
import secrets
import ssl
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from tests.cluster.agent_process import AgentProcess, apart
from tests.cluster.api import NOBODY, PODS
from tests.cluster.waiting import eventually
from tests.faults.fuzz import FuzzProxy
from tests.faults.member import Member

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(3600)]

ANSWERS = int(os.environ.get("FUZZ_ANSWERS", "300"))
IS_MEASURED = "FUZZ_ANSWERS" in os.environ  # on a machine that has nothing else to do
SEED = int(os.environ.get("FUZZ_SEED", "15"))
_LEASE_SECONDS = 40  # the default, renewed every 10 s
_RENEWALS = 2  # of each lease at least, while it is lied to
_PATIENCE_SECONDS = 300 + ANSWERS
# Heartbeats have as long as this for an answer, also on a machine that is busy with the lies.
_FLAGS = ("--node-status-update-frequency=4s", "--healthz-port=0")
_PODS = 10
_CALLERS = 8


@pytest.fixture
async def proxy(plane):
    tls = ssl.create_default_context(cafile=plane.ca_file)
    tls.load_cert_chain(plane.admin_cert, plane.admin_key)
    proxy = FuzzProxy(plane.url, tls, seed=SEED)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.fixture
async def members(proxy, plane, node_name, tmp_path):
    """Two nodes: one whose callers are reviewed, and one that asks for a serving certificate."""
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "any"}}],
    }
    found = []
    for name, flags in ((f"{node_name}-a", ()), (f"{node_name}-b", ("--rotate-server-certificates",))):
        (tmp_path / name).mkdir()
        kubeconfig = tmp_path / name / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        own = ("--kubeconfig", str(kubeconfig), "--hostname-override", name)
        process = AgentProcess(*own, *apart(tmp_path / name), *_FLAGS, *flags, log=tmp_path / name / "log")
        process.start()
        found.append(Member(plane, name, process))
    yield found
    for member in found:
        member.leave()
        for number in range(_PODS):
            member.api.delete(f"{PODS}/{member.name}-{number}?gracePeriodSeconds=0")


def create_pods(member):
    """Pods that end and begin again all the time; done when all have begun."""
    for number in range(_PODS):
        spec = {"nodeName": member.name, "containers": [{"name": "main", "image": "pause"}], "restartPolicy": "Always"}
        metadata = {"name": f"{member.name}-{number}", "annotations": {"fake-kubelet.dev/run-for": "1s"}}
        member.api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    selected = f"{PODS}?fieldSelector=spec.nodeName={member.name},status.phase=Running"
    eventually(lambda: len(member.api.items(selected)) == _PODS)


def memory_mib(process, field):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def forget_peak(process):
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


def port_of(member):
    return member.node()["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]


async def call(member):
    """Somebody with tokens that nobody knows asks for metrics, so that the daemon asks for reviews."""
    port = port_of(member)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
        while True:
            headers = {"Authorization": f"Bearer {secrets.token_hex(4)}"}
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.get(f"https://127.0.0.1:{port}/metrics", headers=headers) as answer:
                    await answer.read()
            await asyncio.sleep(0.05)


async def until(is_enough, members):
    """Wait for something while all members live."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not is_enough():
            assert all(member.process.running for member in members)
            await asyncio.sleep(0.1)


def renewed(times, proxy, members):
    """Tells whether all have renewed their leases so many times since now."""
    goals = {member.name: len(proxy.renewals[member.name]) + times for member in members}
    return lambda: all(len(proxy.renewals[name]) >= goal for name, goal in goals.items())


def longest_gap(renewals):
    return max(after - before for before, after in itertools.pairwise(renewals))


async def test_a_lying_api_server_ends_no_daemon_and_no_renewals(proxy, members, figure):
    for member in members:
        await asyncio.to_thread(eventually, member.is_whole)
        await asyncio.to_thread(create_pods, member)
    port = port_of(members[0])
    await asyncio.to_thread(eventually, lambda: NOBODY.ask(port, "GET", "/metrics").status)  # loads what answers
    idle = [memory_mib(member.process, "VmRSS") for member in members]
    for member in members:
        forget_peak(member.process)
    callers = [asyncio.create_task(call(members[0])) for _ in range(_CALLERS)]
    proxy.wild, began = True, time.monotonic()
    await until(renewed(_RENEWALS, proxy, members), members)
    await until(lambda: proxy.lies >= ANSWERS, members)
    proxy.wild, took = False, time.monotonic() - began
    for caller in callers:
        caller.cancel()
    await until(renewed(1, proxy, members), members)
    for member in members:
        await asyncio.to_thread(eventually, member.is_whole)
    peak = [memory_mib(member.process, "VmHWM") for member in members]
    worst = [longest_gap(proxy.renewals[member.name]) for member in members]
    figure("lies", f"{proxy.lies} {dict(proxy.kinds)} in {took:.0f} s, seed {SEED}")
    figure("worst lease gap", ", ".join(f"{gap.total_seconds():.1f} s" for gap in worst))
    figure("RSS", ", ".join(f"{before:.1f} -> {most:.1f} MiB" for before, most in zip(idle, peak, strict=True)))
    for member in members:
        assert "Traceback" not in member.process.log_text()
    for before, most in zip(idle, peak, strict=True):
        assert most < 1.5 * before
    if IS_MEASURED:
        assert max(worst) < timedelta(seconds=_LEASE_SECONDS)
