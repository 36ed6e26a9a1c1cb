"""What the kernel tells about a process."""

import time
from dataclasses import dataclass
from pathlib import Path

_CPUCLOCK_SCHED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a process costs at one moment; CPU time is counted from its start."""

    rss_kib: int
    anonymous_kib: int
    cpu_ms: float
    threads: int
    open_files: int


def footprint(pid: int) -> Footprint:
    """The process's cost now."""
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Footprint(
        rss_kib=int(status["VmRSS"].split()[0]),
        anonymous_kib=int(status["RssAnon"].split()[0]),
        cpu_ms=_cpu_ms(pid),
        threads=int(status["Threads"]),
        open_files=len(list((process / "fd").iterdir())),
    )


def _cpu_ms(pid: int) -> float:
    """CPU time of all its threads to the nanosecond, where /proc has whole ticks that it was seen in."""
    clock = (~pid << 3) | _CPUCLOCK_SCHED  # what clock_getcpuclockid(3) makes of a process; Python does not have it
    return time.clock_gettime_ns(clock) / 1e6


def cpu_model() -> str:
    """The processor's name, as far as the kernel knows it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
