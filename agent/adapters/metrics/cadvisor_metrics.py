"""/metrics/cadvisor: the machine, and the root cgroup as its only container."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent.adapters.metrics.exposition import exposition, format_labels
from agent.core.kubelet_data.cadvisor import METRICS
from agent.core.metrics import Family, Sample
from agent.core.pods.container import container_key
from agent.core.pods.info import PodInfo
from agent.core.pods.stats import Figures, pod_figures
from agent.core.times import parse_time
from agent.core.usage import (
    BlockUsage,
    CpuUsage,
    HostUsage,
    InterfaceUsage,
    MemoryUsage,
    MountUsage,
    Processes,
)

_ROOT = {"container": "", "id": "/", "image": "", "name": "", "namespace": "", "pod": ""}
_QOS_GROUPS = {"Burstable": "/burstable", "BestEffort": "/besteffort"}
_MEMORY = ("container_memory_rss", "container_memory_usage_bytes", "container_memory_working_set_bytes")


class _Metric(NamedTuple):
    name: str
    value: float
    labels: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it


def cadvisor_metrics(usage: HostUsage, pods: Sequence[PodInfo] = ()) -> bytes:
    """Return what a kubelet reports of id="/" and of its pods.

    Descriptors and sockets are missing: they need a look at every process.
    """
    at_seconds = usage.at.timestamp()
    by_name: dict[str, list[Sample]] = {}
    for metric in _measured(usage):
        by_name.setdefault(metric.name, []).append(Sample("", _ROOT | metric.labels, metric.value, at_seconds))
    for metric in _limits(usage):
        by_name.setdefault(metric.name, []).append(Sample("", _ROOT | metric.labels, metric.value))
    for metric in _machine(usage):
        by_name.setdefault(metric.name, []).append(Sample("", metric.labels, metric.value))
    for name, sample in _pods(pods, usage.at):
        by_name.setdefault(name, []).append(sample)
    families = []
    for name, samples in by_name.items():
        kind, text = METRICS[name]
        families.append(Family(name, text, kind, samples))
    return exposition(families)


def _pods(pods: Sequence[PodInfo], at: datetime) -> Iterator[tuple[str, Sample]]:
    """Yield what each pod and each of its containers uses."""
    for pod, containers, total in pod_figures(pods, at):
        # as with the driver cgroupfs, which is the kubelet's default
        group = f"/kubepods{_QOS_GROUPS.get(pod.qos_class, '')}/pod{pod.uid}"
        named = {"namespace": pod.namespace, "pod": pod.name}
        yield from _used(total, {"container": "", "id": group, "image": "", "name": "", **named}, at)
        for container, figures in containers:
            key = container_key(pod.uid, container.name, container.restarts)
            labels = {
                "container": container.name,
                "id": f"{group}/{key}",
                "image": container.image,
                "name": key,
                **named,
            }
            yield from _used(figures, labels, at)
            if container.started_at:
                began = parse_time(container.started_at).timestamp()
                yield "container_start_time_seconds", Sample("", format_labels(labels.items()), began)


def _used(figures: Figures, labels: dict[str, str], at: datetime) -> Iterator[tuple[str, Sample]]:
    at_seconds = at.timestamp()
    cpu = format_labels([*labels.items(), ("cpu", "total")])
    yield "container_cpu_usage_seconds_total", Sample("", cpu, figures.cpu_nanoseconds / 1e9, at_seconds)
    text = format_labels(labels.items())
    for name in _MEMORY:
        yield name, Sample("", text, figures.memory_bytes, at_seconds)


def _measured(usage: HostUsage) -> Iterator[_Metric]:
    """Yield what was measured, which carries the time of measuring."""
    yield _Metric("container_last_seen", int(usage.at.timestamp()))
    yield _Metric("container_health_state", -1)  # there is no health check
    if usage.root.cpu:
        yield from _cpu(usage.root.cpu)
    if usage.root.memory:
        yield from _memory(usage.root.memory)
    if usage.processes:
        yield from _processes(usage.processes)
    for interface in usage.interfaces:
        yield from _network(interface)
    for mount in usage.mounts:
        yield from _mount(mount)
    mounted = {mount.device for mount in usage.mounts}
    for block in usage.blocks:
        yield from _block(block, mounted=block.device in mounted)
    yield from _pressures(usage)


def _cpu(cpu: CpuUsage) -> Iterator[_Metric]:
    yield _Metric("container_cpu_user_seconds_total", cpu.user_ns / 1e9)
    yield _Metric("container_cpu_system_seconds_total", cpu.system_ns / 1e9)
    yield _Metric("container_cpu_usage_seconds_total", cpu.total_ns / 1e9, {"cpu": "total"})
    # A kubelet does not measure these, and reports them as 0.
    yield _Metric("container_cpu_load_average_10s", 0)
    yield _Metric("container_cpu_load_d_average_10s", 0)
    for state in ("iowaiting", "running", "sleeping", "stopped", "uninterruptible"):
        yield _Metric("container_tasks_state", 0, {"state": state})


def _memory(memory: MemoryUsage) -> Iterator[_Metric]:
    yield _Metric("container_memory_cache", memory.cache_bytes)
    yield _Metric("container_memory_failcnt", memory.failures)
    yield _Metric("container_memory_kernel_usage", memory.kernel_bytes)
    yield _Metric("container_memory_mapped_file", memory.mapped_file_bytes)
    yield _Metric("container_memory_max_usage_bytes", memory.peak_bytes)
    yield _Metric("container_memory_rss", memory.rss_bytes)
    yield _Metric("container_memory_swap", memory.swap_bytes)
    yield _Metric("container_memory_total_active_file_bytes", memory.active_file_bytes)
    yield _Metric("container_memory_total_inactive_file_bytes", memory.inactive_file_bytes)
    yield _Metric("container_memory_usage_bytes", memory.usage_bytes)
    yield _Metric("container_memory_working_set_bytes", memory.working_set_bytes)
    for scope in ("container", "hierarchy"):
        for kind, count in (("pgfault", memory.page_faults), ("pgmajfault", memory.major_page_faults)):
            yield _Metric("container_memory_failures_total", count, {"failure_type": kind, "scope": scope})


def _processes(processes: Processes) -> Iterator[_Metric]:
    yield _Metric("container_processes", processes.processes)
    yield _Metric("container_threads", processes.threads)
    yield _Metric("container_threads_max", 0)  # the root has no limit
    yield _Metric("container_oom_events_total", processes.oom_kills)
    if processes.open_files_limit is not None:
        yield _Metric("container_ulimits_soft", processes.open_files_limit, {"ulimit": "max_open_files"})


def _network(interface: InterfaceUsage) -> Iterator[_Metric]:
    counters = {
        "receive_bytes": interface.rx_bytes,
        "receive_errors": interface.rx_errors,
        "receive_packets_dropped": interface.rx_dropped,
        "receive_packets": interface.rx_packets,
        "transmit_bytes": interface.tx_bytes,
        "transmit_errors": interface.tx_errors,
        "transmit_packets_dropped": interface.tx_dropped,
        "transmit_packets": interface.tx_packets,
    }
    for name, count in counters.items():
        yield _Metric(f"container_network_{name}_total", count, {"interface": interface.name})


def _mount(mount: MountUsage) -> Iterator[_Metric]:
    filesystem, disk = mount.filesystem, mount.activity
    values = {
        "inodes_free": filesystem.inodes_free,
        "inodes_total": filesystem.inodes,
        "limit_bytes": filesystem.capacity_bytes,
        "usage_bytes": filesystem.used_bytes,
        "reads_total": disk.reads,
        "reads_merged_total": disk.reads_merged,
        "sector_reads_total": disk.sectors_read,
        "writes_total": disk.writes,
        "writes_merged_total": disk.writes_merged,
        "sector_writes_total": disk.sectors_written,
        "io_current": disk.in_progress,
        # cAdvisor takes the kernel's milliseconds for nanoseconds, and dashboards expect that.
        "read_seconds_total": disk.read_ms / 1e9,
        "write_seconds_total": disk.write_ms / 1e9,
        "io_time_seconds_total": disk.io_ms / 1e9,
        "io_time_weighted_seconds_total": disk.weighted_io_ms / 1e9,
    }
    for name, value in values.items():
        yield _Metric(f"container_fs_{name}", value, {"device": mount.device})


def _block(block: BlockUsage, *, mounted: bool) -> Iterator[_Metric]:
    """Yield the I/O of a device, without what _mount has reported of a mounted one."""
    device, (major, _, minor) = {"device": block.device}, block.number.partition(":")
    yield _Metric("container_fs_reads_bytes_total", block.read_bytes, device)
    yield _Metric("container_fs_writes_bytes_total", block.written_bytes, device)
    if not mounted:
        yield _Metric("container_fs_reads_total", block.reads, device)
        yield _Metric("container_fs_writes_total", block.writes, device)
    for operation, count in (("Read", block.read_bytes), ("Write", block.written_bytes)):
        labels = device | {"major": major, "minor": minor, "operation": operation}
        yield _Metric("container_blkio_device_usage_total", count, labels)


def _pressures(usage: HostUsage) -> Iterator[_Metric]:
    pressures = {
        "cpu": usage.root.cpu.pressure if usage.root.cpu else None,
        "memory": usage.root.memory.pressure if usage.root.memory else None,
        "io": usage.root.io_pressure,
    }
    for resource, pressure in pressures.items():
        if pressure:
            yield _Metric(f"container_pressure_{resource}_stalled_seconds_total", pressure.full.total / 1e6)
            yield _Metric(f"container_pressure_{resource}_waiting_seconds_total", pressure.some.total / 1e6)


def _limits(usage: HostUsage) -> Iterator[_Metric]:
    """Yield the limits of the root cgroup, which carry no time."""
    yield _Metric("container_start_time_seconds", int(usage.root.since.timestamp()))
    if usage.root.cpu:
        yield _Metric("container_spec_cpu_period", usage.root.cpu.period_us)
        yield _Metric("container_spec_cpu_shares", usage.root.cpu.shares)
    if usage.root.memory:
        yield _Metric("container_spec_memory_limit_bytes", usage.root.memory.total_bytes)
        yield _Metric("container_spec_memory_swap_limit_bytes", usage.root.memory.swap_total_bytes)
        yield _Metric("container_spec_memory_reservation_limit_bytes", 0)


def _machine(usage: HostUsage) -> Iterator[_Metric]:
    host = usage.host
    machine = {"boot_id": host.boot_id, "machine_id": host.machine_id, "system_uuid": host.system_uuid}
    values = {
        "cpu_cores": len(host.online_cpus),
        "cpu_physical_cores": usage.physical_cores,
        "cpu_sockets": usage.sockets,
        "cpu_books": 0,  # mainframes have them
        "cpu_drawers": 0,
        "memory_bytes": usage.root.memory.total_bytes if usage.root.memory else 0,
        "swap_bytes": usage.root.memory.swap_total_bytes if usage.root.memory else 0,
        "nvm_avg_power_budget_watts": 0,  # a kubelet is built without the library that measures it
    }
    for name, value in values.items():
        yield _Metric(f"machine_{name}", value, machine)
    for mode in ("app_direct_mode", "memory_mode"):
        yield _Metric("machine_nvm_capacity", 0, machine | {"mode": mode})
    failed = usage.root.cpu is None or usage.root.memory is None
    yield _Metric("container_scrape_error", float(failed))
    yield _Metric("machine_scrape_error", 0)
    versions = {"cadvisorRevision": "", "cadvisorVersion": "", "dockerVersion": ""}
    system = {"kernelVersion": host.kernel_version, "osVersion": host.os_image}
    yield _Metric("cadvisor_version_info", 1, versions | system)
