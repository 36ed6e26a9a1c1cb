"""Connections that cost their client nothing cost the node next to nothing, and the heart beats on."""

import asyncio
import http.client
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from agent.core import lease
from agent.minicluster import MiniCluster
from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NOBODY
from tests.cluster.crowd import Crowd, peak, settled_kib
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.anyio

_LEASE_SECONDS = 20  # renewed every 5
_MOST_RATIO = 1.5  # of the memory at its peak and when idle; 1.2 as a rule, and 2.7 with TLS for everybody


async def test_thousands_of_silent_connections_cost_neither_memory_nor_a_renewal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main, plain, healthz = free_ports(3)
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        own = (f"--kubeconfig={tmp_path / 'kubeconfig'}", "--hostname-override=crowded", "--address=127.0.0.1")
        ports = (f"--port={main}", f"--read-only-port={plain}", f"--healthz-port={healthz}")
        other = (f"--cert-dir={tmp_path / 'pki'}", f"--node-lease-duration-seconds={_LEASE_SECONDS}")
        agent = AgentProcess(*own, *ports, *other, log=tmp_path / "agent.log")
        agent.start()
        seen: list[datetime] = []
        noting = asyncio.create_task(note_renewals(cluster, seen))
        try:
            idle, most = await asyncio.to_thread(crowded, agent, main, (plain, healthz))
            count = len(seen)
            await asyncio.to_thread(eventually, lambda: len(seen) > count + 1, within=2 * _LEASE_SECONDS)
        finally:
            noting.cancel()
            code = agent.stop()
    with capsys.disabled():
        print(f"\nmemory {idle} → at most {most} KiB, {most / idle:.2f} times", end="; ")
    assert most <= _MOST_RATIO * idle
    assert max((later - earlier).total_seconds() for earlier, later in pairwise(seen)) < _LEASE_SECONDS
    assert "Traceback" not in agent.log_text()
    assert code == 0


def crowded(agent: AgentProcess, main: int, plain: tuple[int, ...]) -> tuple[int, int]:
    """The memory of the daemon when idle, and at its peak while a crowd is at its ports."""
    eventually(lambda: NOBODY.ask(main, "GET", "/metrics").status == 200)
    for port in plain:
        eventually(lambda at=port: healthz(at) == 200)
    idle = settled_kib(agent.pid)
    crowds = [Crowd(main, is_tls=True), *(Crowd(port, is_tls=False) for port in plain)]
    with peak(agent.pid) as most:
        crowds[0].come(2_500, bare=True)
        crowds[0].come(1_500)
        for crowd in crowds[1:]:
            crowd.come(500)
        assert NOBODY.ask(main, "GET", "/healthz", source="127.0.0.1").status == 200  # there is room for one more
        for crowd in crowds:
            crowd.leave()
    return idle, most()


def healthz(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


async def note_renewals(cluster: MiniCluster, seen: list[datetime]) -> None:
    """Note each renewal of the lease, as the node wrote it."""
    while True:
        found = cluster.store.get("leases.coordination.k8s.io", "crowded", lease.NAMESPACE)
        if found and (at := datetime.fromisoformat(found["spec"]["renewTime"])) not in seen[-1:]:
            seen.append(at)
        await asyncio.sleep(0.1)
