"""What malformed requests cost the node: `python -m tests.bench.abuse [--count 9000]`; needs no Go.

The daemon runs with the embedded cluster. Damaged requests come to its ports, while 200 clients send a letter of a
header each second and one honest caller asks now and then. It fails if the memory grows by more than 40 MiB, if one in
four of them hears nothing, if the honest one waits for longer than 5 s, or if the lease ends before it is renewed.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from agent.core import lease
from agent.minicluster import MiniCluster
from tests.cluster.agent_process import OPEN, AgentProcess
from tests.cluster.api import NOBODY
from tests.cluster.crowd import peak, settled_kib
from tests.cluster.malformed import dawdle, requests, stranger, strangers, throw
from tests.cluster.port_fuzz import Door, Findings, Fuzzer, fuzz
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

_DAWDLERS, _STRANGERS = 200, 40
_LEASE_SECONDS = 20
_SHARE = 0.75
_MOST_GROWTH_KIB = 40 * 1024
_PATIENCE_SECONDS = 5.0


async def honest(port: int, waits: list[float]) -> None:
    """Note how long somebody waits who really wants something."""
    while True:
        began = time.monotonic()
        await asyncio.to_thread(NOBODY.ask, port, "GET", "/healthz", source="127.0.0.2")
        waits.append(time.monotonic() - began)
        await asyncio.sleep(1)


async def renewals(cluster: MiniCluster, seen: list[datetime]) -> None:
    """Note each renewal of the lease."""
    while True:
        found = cluster.store.get("leases.coordination.k8s.io", "abused", lease.LEASE_NAMESPACE)
        if found and (at := datetime.fromisoformat(found["spec"]["renewTime"])) not in seen[-1:]:
            seen.append(at)
        await asyncio.sleep(0.05)


async def abuse(folder: Path, main: int, plain: int, count: int) -> bool:
    """Print a row for each kind of request; whether enough of them heard something."""
    tls, few, held = stranger(), count // 18, True
    print("| requests | sent | heard | seconds |\n|---|---:|---:|---:|")

    def row(name: str, sent: int, heard: int, began: float) -> None:
        nonlocal held
        held = held and heard >= _SHARE * sent
        print(f"| {name} | {sent} | {heard} | {time.monotonic() - began:.1f} |", flush=True)

    for name, sent, port, context in (
        ("plain", count, plain, None),
        ("TLS", few, main, tls),
        ("none", few, main, None),
    ):
        began = time.monotonic()
        row(name, sent, await throw(port, requests(sent), tls=context), began)
    began = time.monotonic()
    heard = [await throw(main, requests(1), tls=who, at_once=1) for who in strangers(folder, _STRANGERS)]
    row("strangers", _STRANGERS, sum(heard), began)
    for door in (Door("fuzz, TLS", main, tls), Door("fuzz, plain", plain)):
        began, found = time.monotonic(), Findings()
        await fuzz(door, few, Fuzzer(15), found)
        row(door.name, found.sent, found.sent - found.statuses["-"], began)
    return held


async def measured(folder: Path, count: int) -> bool:
    """Whether all bounds were kept."""
    main, plain = free_ports(2)
    flags = (f"--kubeconfig={folder / 'kubeconfig'}", "--hostname-override=abused", "--address=127.0.0.1", OPEN)
    ports = (f"--port={main}", f"--read-only-port={plain}", "--healthz-port=0", f"--cert-dir={folder / 'pki'}")
    rhythm = f"--node-lease-duration-seconds={_LEASE_SECONDS}"
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(folder / "kubeconfig")
        agent = AgentProcess(*flags, *ports, rhythm, log=folder / "agent.log")
        agent.start()
        try:
            for path in ("/metrics", "/stats/summary", "/metrics/cadvisor", "/metrics/resource"):  # loads what renders
                await asyncio.to_thread(eventually, lambda at=path: NOBODY.ask(main, "GET", at).status == 200)
            idle, waits, seen = await asyncio.to_thread(settled_kib, agent.pid), list[float](), list[datetime]()
            beside = [
                asyncio.create_task(one)
                for one in (renewals(cluster, seen), honest(main, waits), dawdle(main, _DAWDLERS, tls=stranger()))
            ]
            with peak(agent.pid) as most:
                held = await abuse(folder, main, plain, count)
                await asyncio.to_thread(eventually, lambda: len(seen) >= 3)
                peak_kib = most()
            for task in beside:
                task.cancel()
        finally:
            agent.stop()
    gap = max((later - earlier).total_seconds() for earlier, later in pairwise(seen))
    print(
        f"memory {idle} KiB, at most {peak_kib}; the longest wait {max(waits):.2f} s; {gap:.2f} s between two renewals"
    )
    return held and peak_kib - idle <= _MOST_GROWTH_KIB and max(waits) <= _PATIENCE_SECONDS and gap < _LEASE_SECONDS


def main() -> None:
    """Print a table; the exit code is 1 if a bound was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=9_000)
    with tempfile.TemporaryDirectory(prefix="fk") as folder:
        if not asyncio.run(measured(Path(folder), parser.parse_args().count)):
            sys.exit("a bound was not kept")


if __name__ == "__main__":
    main()
