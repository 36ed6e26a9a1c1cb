"""What idle nodes of one process cost: `python -m tests.bench.nodes [--count 1000]`.

They live on an embedded cluster for a while, once alone and once with all the others. It fails where a further node
takes more memory than it may.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import psutil

from agent.adapters.clock import SystemClock
from agent.adapters.credentials import load_credentials
from agent.adapters.host import LinuxHost
from agent.adapters.kube import KubeSelection, PodSelection
from agent.adapters.settings import load
from agent.adapters.shapes import NodeShape
from agent.connections import clients_of, open_connections
from agent.process import Process
from agent.supervisor import supervise
from tests.cluster.embedded import EmbeddedCluster

_MOST_KIB = 24.0  # a further node, with its Node cached
_SECONDS = 60.0


async def live(kubeconfig: str, count: int) -> None:
    """Host so many nodes, and print what they cost in the second half of a while."""
    config = load(["--kubeconfig", kubeconfig])
    credentials = await load_credentials(config.process.kubeconfig)
    connections = open_connections(credentials, config.node.heartbeat, lambda: None)
    host = config.process.host
    process = Process(LinuxHost(host), SystemClock(), sensor_seconds=host.sensor_seconds)
    nodes = [
        process.add(replace(config.node, node_name=f"n{number}"), clients_of(connections, config.node))
        for number in range(count)
    ]
    process.reflect(KubeSelection(connections.watch, "/api/v1/nodes", shape=NodeShape), PodSelection(connections.watch))
    process.start()
    stop, this = asyncio.Event(), psutil.Process()

    async def measure() -> None:
        await asyncio.sleep(_SECONDS / 2)
        before = sum(this.cpu_times()[:2])
        await asyncio.sleep(_SECONDS / 2)
        ages = [node.lease_health.renewal_age_seconds for node in nodes]
        found = {
            "rss_kib": this.memory_info().rss / 1024,
            "cpu_share": (sum(this.cpu_times()[:2]) - before) / (_SECONDS / 2),
            "tasks": len(asyncio.all_tasks()),
            "late": sum(age is None or age > 10.4 * 1.5 for age in ages),
            "faults": dict(process.health.faults()),
        }
        print(json.dumps(found))
        stop.set()

    measuring = asyncio.create_task(measure())
    await supervise(process.tasks, stop, lasting=process.lasting_tasks)
    await measuring
    for connection in connections:
        await connection.close()


def measured(kubeconfig: Path, count: int) -> dict[str, float]:
    """The same, of a process of its own."""
    argv = [sys.executable, "-m", "tests.bench.nodes", f"--count={count}", f"--host={kubeconfig}"]
    found: dict[str, float] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    print(f"{count} nodes: {found}")
    return found


def main() -> int:
    """Print the cost of a node beside others; 1 where it is too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--host", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        asyncio.run(live(options.host, options.count))
        return 0
    with tempfile.TemporaryDirectory() as folder, EmbeddedCluster() as cluster:
        kubeconfig = Path(folder, "kubeconfig")
        cluster.write_kubeconfig(kubeconfig)
        one, all_of_them = (measured(kubeconfig, count) for count in (1, options.count))
    kib = (all_of_them["rss_kib"] - one["rss_kib"]) / (options.count - 1)
    print(f"a further node: {kib:.1f} KiB; it may take {_MOST_KIB:g}")
    return 0 if kib <= _MOST_KIB and not all_of_them["late"] else 1


if __name__ == "__main__":
    sys.exit(main())
