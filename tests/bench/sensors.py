"""What a look at the host each second costs: `python -m tests.bench.sensors [--looks 600]`.

It fails where that is more of a core than it may be.
"""

import argparse
import asyncio
import resource
import sys

from agent.adapters.clock import SystemClock
from agent.adapters.host import LinuxHost
from agent.core.pressure import DEFAULT_HARD, parse_thresholds
from agent.process import Process
from tests.settings import Eviction, HostConfig

_BUDGET = 0.003  # of one core


async def cost(looks: int) -> float:
    """CPU seconds of one look, with the default thresholds."""
    eviction = Eviction(hard=parse_thresholds(DEFAULT_HARD))
    process = Process(LinuxHost(HostConfig()), SystemClock(), sensor_seconds=1.0)
    monitor = process.engine.monitor
    await monitor.snapshot(eviction)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(looks):
        await monitor.sync()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / looks


def main() -> int:
    """Print the cost as a share of one core; 1 where it is too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--looks", type=int, default=600)
    seconds = asyncio.run(cost(parser.parse_args().looks))
    print(
        f"one look: {seconds * 1e3:.2f} ms of CPU; every second: {seconds:.2%} of one core; the budget is {_BUDGET:.2%}"
    )
    return 0 if seconds <= _BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
