"""What the kernel tells about a process."""

import os
from dataclasses import dataclass
from pathlib import Path


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
        cpu_ms=_cpu_ms((process / "stat").read_text()),
        threads=int(status["Threads"]),
        open_files=len(list((process / "fd").iterdir())),
    )


def _cpu_ms(stat: str) -> float:
    """utime + stime, fields 14 and 15 of proc(5), counted after the name, which may contain spaces."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def cpu_model() -> str:
    """The processor's name, as far as the kernel knows it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
