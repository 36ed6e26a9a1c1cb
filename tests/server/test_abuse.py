"""The heart beats on, whatever comes in at the door; what it costs is measured by tests/bench/abuse.py."""

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cluster import audit
from tests.cluster.agent_process import OPEN, AgentProcess
from tests.cluster.api import NOBODY, NODES
from tests.cluster.control_plane import ControlPlane
from tests.cluster.malformed import dawdle, requests, stranger, strangers, throw
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

_PLAIN, _OVER_TLS, _GARBAGE, _STRANGERS, _DAWDLERS = 1_500, 100, 200, 10, 200
_LEASE_SECONDS = 20  # renewed every 5
_PATIENCE_SECONDS = 60.0


async def honest(port: int, answers: list[int]) -> None:
    """Somebody from another address who really wants something, now and then."""
    while True:
        answers.append((await asyncio.to_thread(NOBODY.ask, port, "GET", "/healthz", source="127.0.0.2")).status)
        await asyncio.sleep(0.5)


async def test_fuzz_and_slow_clients_prevent_no_renewal_and_keep_nobody_out(
    control_plane: ControlPlane, node_name: str, tmp_path: Path
) -> None:
    port, plain = free_ports(2)
    kubeconfig = control_plane.node_kubeconfig(node_name)
    own = (f"--kubeconfig={kubeconfig}", f"--hostname-override={node_name}", "--healthz-port=0", OPEN)
    serving = ("--address=127.0.0.1", f"--port={port}", f"--read-only-port={plain}", f"--cert-dir={tmp_path / 'pki'}")
    trust = f"--client-ca-file={control_plane.ca_file}"  # or nobody would be asked for a certificate
    rhythm = f"--node-lease-duration-seconds={_LEASE_SECONDS}"
    agent = AgentProcess(*own, *serving, trust, rhythm, log=tmp_path / "agent.log")

    def renewals() -> list[datetime]:
        return audit.renewals(audit.requests_of(node_name, control_plane.audit_log))

    agent.start()
    try:
        eventually(lambda: NOBODY.ask(port, "GET", "/healthz").status == 200)
        eventually(renewals)
        began, answers, tls = datetime.now(UTC), list[int](), stranger()
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(dawdle(port, _DAWDLERS, tls=tls)),
                group.create_task(honest(port, answers)),
            ]
            # Where the end of a request is told, each is answered, or its connection ended.
            assert await throw(plain, requests(_PLAIN), patience_seconds=_PATIENCE_SECONDS) == _PLAIN
            assert await throw(port, requests(_GARBAGE, seed=9), patience_seconds=_PATIENCE_SECONDS) == _GARBAGE
            await throw(port, requests(_OVER_TLS), tls=tls)  # not all of them end: no answer is waited for
            for who in strangers(tmp_path, _STRANGERS):
                assert await throw(port, requests(1), tls=who, at_once=1, patience_seconds=_PATIENCE_SECONDS) == 1
            # And all of this goes on while the lease is renewed.
            await asyncio.to_thread(eventually, lambda: len([one for one in renewals() if one > began]) >= 2)
            await asyncio.to_thread(eventually, lambda: len(answers) >= 3)
            for task in beside:
                task.cancel()
        assert set(answers) == {200}
        assert all((later - earlier).total_seconds() < _LEASE_SECONDS for earlier, later in pairwise(renewals()))
        assert NOBODY.ask(port, "GET", "/pods").status == 200
        assert "Traceback" not in agent.log_text()
        assert agent.stop() == 0
    finally:
        agent.stop()
        control_plane.api.delete(f"{NODES}/{node_name}")
