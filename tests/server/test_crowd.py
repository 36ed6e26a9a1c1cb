"""Connections that cost their client nothing keep nobody out, and the heart beats on.

What they cost in memory is measured by tests/bench/connections.py, with thousands of them.
"""

import asyncio
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from agent.core import lease
from agent.minicluster import MiniCluster
from tests.cluster.agent_process import OPEN, AgentProcess
from tests.cluster.api import NOBODY, PLAIN
from tests.cluster.crowd import Crowd
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.anyio

_LEASE_SECONDS = 20  # renewed every 5
_SEATS = 128  # for the connections of one port; listener.py
_PASSING = 16  # whoever comes while another one gives way, and what the daemon opens for a moment itself


async def test_a_crowd_of_silent_connections_takes_no_more_than_its_seats_and_prevents_no_renewal(
    tmp_path: Path,
) -> None:
    main, plain, healthz = free_ports(3)
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        own = (f"--kubeconfig={tmp_path / 'kubeconfig'}", "--hostname-override=crowded", "--address=127.0.0.1", OPEN)
        ports = (f"--port={main}", f"--read-only-port={plain}", f"--healthz-port={healthz}")
        other = (f"--cert-dir={tmp_path / 'pki'}", f"--node-lease-duration-seconds={_LEASE_SECONDS}")
        agent = AgentProcess(*own, *ports, *other, log=tmp_path / "agent.log")
        agent.start()
        seen: list[datetime] = []
        noting = asyncio.create_task(note_renewals(cluster, seen))
        try:
            idle, most = await asyncio.to_thread(crowded, agent, main, (plain, healthz), seen)
        finally:
            noting.cancel()
            code = agent.stop()
    assert most <= idle + 3 * (_SEATS + _PASSING)  # of 300 that came to each
    assert max((later - earlier).total_seconds() for earlier, later in pairwise(seen)) < _LEASE_SECONDS
    assert "Traceback" not in agent.log_text()
    assert code == 0


def crowded(agent: AgentProcess, main: int, plain: tuple[int, ...], seen: list[datetime]) -> tuple[int, int]:
    """The descriptors of the daemon when idle, and the most of them while a crowd is at its ports."""
    eventually(lambda: NOBODY.ask(main, "GET", "/metrics").status == 200)
    for port in plain:
        eventually(lambda at=port: PLAIN.ask(at, "GET", "/healthz").status == 200)
    eventually(lambda: len(seen) >= 2)
    idle, most = descriptors(agent), 0
    crowds = [Crowd(main, is_tls=True), *(Crowd(port, is_tls=False) for port in plain)]
    try:
        for count, bare in ((300, True), (300, False)):
            for crowd in crowds:
                assert crowd.come(count, bare=bare) > _SEATS
                most = max(most, descriptors(agent))
        renewed = len(seen)
        assert NOBODY.ask(main, "GET", "/healthz").status == 200  # there is room for one more
        eventually(lambda: len(seen) >= renewed + 2)
        return idle, max(most, descriptors(agent))
    finally:
        for crowd in crowds:
            crowd.leave()


def descriptors(agent: AgentProcess) -> int:
    return len(list(Path(f"/proc/{agent.pid}/fd").iterdir()))


async def note_renewals(cluster: MiniCluster, seen: list[datetime]) -> None:
    """Note each renewal of the lease, as the node wrote it."""
    while True:
        found = cluster.store.get("leases.coordination.k8s.io", "crowded", lease.LEASE_NAMESPACE)
        if found and (at := datetime.fromisoformat(found["spec"]["renewTime"])) not in seen[-1:]:
            seen.append(at)
        await asyncio.sleep(0.1)
