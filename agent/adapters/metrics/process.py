"""This process in the words that all Prometheus clients share."""

import resource
from collections.abc import Iterator
from functools import cache

import psutil

from agent.core.metrics import Family, Sample

_START_TIME = ("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")

_this = cache(psutil.Process)  # it remembers what does not change


def process() -> Iterator[Family]:
    """CPU, memory and file descriptors of this process."""
    this = _this()
    with this.oneshot():
        cpu, memory = this.cpu_times(), this.memory_info()
    descriptors, most = this.num_fds(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for name, kind, about, value in (
        ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", sum(cpu[:2])),
        ("process_max_fds", "gauge", "Maximum number of open file descriptors.", most),
        ("process_open_fds", "gauge", "Number of open file descriptors.", descriptors),
        ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", memory.rss),
        (_START_TIME[0], "gauge", _START_TIME[1], this.create_time()),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", memory.vms),
    ):
        yield Family(name, about, kind, [Sample("", {}, value)])


def started() -> list[Family]:
    """When this process began, which a kubelet tells on each of its small pages, too."""
    name, about = _START_TIME
    return [Family(name, f"[ALPHA] {about}", "gauge", [Sample("", {}, _this().create_time())])]
