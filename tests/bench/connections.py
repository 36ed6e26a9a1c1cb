"""What a crowd of connections costs the node: `python -m tests.bench.connections [--count 10000]`; needs no Go.

The daemon runs with the embedded cluster. To each of its ports come so many connections: silent ones, such as end at
once, one byte, half a ClientHello, a whole one, a handshake and then nothing. It fails if the memory at its peak is
more than 1.5 times what it is when idle, or if a renewal of the lease was late.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.request import urlopen

from agent.core import lease
from agent.minicluster import MiniCluster
from tests.bench.proc import footprint
from tests.cluster.agent_process import OPEN, AgentProcess
from tests.cluster.api import NOBODY
from tests.cluster.crowd import Crowd, peak, settled_kib
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

_LEASE_SECONDS = 4
_MOST_RATIO = 1.5


async def renewals(cluster: MiniCluster, node: str, seen: list[datetime]) -> None:
    """Note each renewal of the lease."""
    while True:
        found = cluster.store.get("leases.coordination.k8s.io", node, lease.LEASE_NAMESPACE)
        if found:
            at = datetime.fromisoformat(found["spec"]["renewTime"])
            if not seen or at != seen[-1]:
                seen.append(at)
        await asyncio.sleep(0.05)


def attack(agent: AgentProcess, ports: dict[str, int], count: int) -> bool:
    """Print a row for each port; whether all of them held."""
    held = True
    print("| port | connections | seconds | idle KiB | peak KiB | ratio | CPU ms each |\n|---|" + "---:|" * 6)
    for name, port in ports.items():
        idle, began, cpu = settled_kib(agent.pid), time.monotonic(), footprint(agent.pid).cpu_ms
        crowd = Crowd(port, is_tls=name == "10250")
        with peak(agent.pid) as most:
            taken = crowd.come(count)
            took, cpu = time.monotonic() - began, footprint(agent.pid).cpu_ms - cpu
            time.sleep(2)
            crowd.leave()
        ratio = most() / idle
        held = held and ratio <= _MOST_RATIO
        print(f"| {name} | {taken} | {took:.1f} | {idle} | {most()} | {ratio:.2f} | {cpu / count:.2f} |", flush=True)
    return held


async def measured(folder: Path, count: int) -> bool:
    """Whether memory and lease stayed within their bounds."""
    main, plain, healthz = free_ports(3)
    flags = (f"--kubeconfig={folder / 'kubeconfig'}", "--hostname-override=crowded", "--address=127.0.0.1", OPEN)
    ports = (f"--port={main}", f"--read-only-port={plain}", f"--healthz-port={healthz}")
    rhythm = (f"--node-lease-duration-seconds={_LEASE_SECONDS}", f"--cert-dir={folder / 'pki'}")
    async with MiniCluster() as cluster:
        cluster.write_kubeconfig(folder / "kubeconfig")
        agent = AgentProcess(*flags, *ports, *rhythm, log=folder / "agent.log")
        agent.start()
        try:
            await asyncio.to_thread(eventually, lambda: NOBODY.ask(main, "GET", "/metrics").status == 200)
            for path in (f"{plain}/metrics", f"{healthz}/healthz"):
                await asyncio.to_thread(lambda at=path: urlopen(f"http://127.0.0.1:{at}").read())
            seen: list[datetime] = []
            noting = asyncio.create_task(renewals(cluster, "crowded", seen))
            named = {"10250": main, "10255": plain, "10248": healthz}
            held = await asyncio.to_thread(attack, agent, named, count)
            noting.cancel()
        finally:
            agent.stop()
    gap = max((later - earlier).total_seconds() for earlier, later in pairwise(seen))
    print(f"{len(seen)} renewals, at most {gap:.2f} s between two; the lease lasts {_LEASE_SECONDS} s")
    return held and gap < _LEASE_SECONDS


def main() -> None:
    """Print a table; the exit code is 1 if a bound was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    count = parser.parse_args().count
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory(prefix="fk") as folder:
        if not asyncio.run(measured(Path(folder), count)):
            sys.exit("a bound was not kept")


if __name__ == "__main__":
    main()
