"""The host that a node reports: everything about it, or only what may change from one second to the next."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agent.adapters.clock import SystemClock
from agent.adapters.host.cgroup import Limits, limited, mounted_version, own_limits
from agent.adapters.host.counters import memory_usage
from agent.adapters.host.deadline_reader import DeadlineReader, SensorMetrics, Sensors, read_together
from agent.adapters.host.files import HostFiles, filesystem_of
from agent.adapters.host.machine import (
    architecture,
    hugepages_bytes,
    network,
    online_cpus,
    os_image,
    pids_max,
    pids_used,
    resolve,
    system_uuid,
)
from agent.adapters.host.usage import UsageReader
from agent.core.config import HostConfig
from agent.core.metrics import Family
from agent.core.model import Filesystem, HostSnapshot, IPAddress
from agent.core.usage import Detail, HostUsage, MemoryUsage
from agent.ports import Clock

_FIRST_DEADLINE_SECONDS = 10.0
_RESOLVER_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernel:
    """What the kernel answers at once, whatever the disks do."""

    online_cpus: frozenset[int] = frozenset()
    memory: MemoryUsage | None = None
    pids_used: int | None = None
    limits: Limits | None = None


class LinuxHost:
    """Reads the machine it runs on; what blocks runs in threads, and within a deadline."""

    def __init__(self, config: HostConfig, *, clock: Clock | None = None) -> None:
        self._config = config
        self._files = HostFiles(Path(config.root))
        self._metrics = SensorMetrics()
        self._described = HostSnapshot(architecture=architecture())
        self._last = self._described
        # A machine that is slow to answer at first is not a machine without memory.
        self._kernel = DeadlineReader(
            _Kernel(), self._kernel_sensors(), first_deadline_seconds=_FIRST_DEADLINE_SECONDS, metrics=self._metrics
        )
        self._storage: DeadlineReader[Filesystem | None] = DeadlineReader(
            None, {"nodefs": lambda _: filesystem_of(self._files.path(config.root_dir))}, metrics=self._metrics
        )
        self._description = DeadlineReader(
            self._described,
            {
                "identity": self._read_identity,
                "hugepages": lambda host: replace(host, hugepages_bytes=hugepages_bytes(self._files)),
                "pid limit": lambda host: replace(host, pids_max=pids_max(self._files)),
                "network": lambda host: replace(host, network=network(self._files)),
            },
            first_deadline_seconds=_FIRST_DEADLINE_SECONDS,
            metrics=self._metrics,
        )
        self._resolver: DeadlineReader[tuple[IPAddress, ...]] = DeadlineReader(
            (),
            {"resolver": lambda _: resolve(config.resolved_name)},
            deadline_seconds=_RESOLVER_SECONDS,
            metrics=self._metrics,
        )
        self._usage = UsageReader(self._files, clock or SystemClock(), self._metrics, root_dir=config.root_dir)

    @property
    def hangs(self) -> bool:
        """Whether some reading has not come back: a thread that cannot be waited for."""
        readers = (self._kernel, self._storage, self._description, self._resolver, self._usage)
        return any(reader.hangs for reader in readers)

    def families(self) -> Iterator[Family]:
        """How the readings went, as metrics."""
        return self._metrics.families()

    async def glance(self) -> HostSnapshot:
        """Read what may change from one second to the next; the rest is as it was."""
        if self._storage.has_value:
            await read_together(self._kernel, self._storage)
        else:  # a disk that is dead from the start holds up nothing else
            await self._kernel.read()
            await self._storage.read()
        return self._glance()

    async def snapshot(self) -> HostSnapshot:
        """Read everything."""
        resolver = (self._resolver,) if self._config.resolved_name else ()
        if self._storage.has_value:
            await read_together(self._kernel, self._description, self._storage, *resolver)
        else:
            for reader in (self._description, *resolver, self._kernel, self._storage):
                await reader.read()
        self._described = self._description.value
        if self._config.resolved_name:
            network = replace(self._described.network, node_name_addresses=self._resolver.value)
            self._described = replace(self._described, network=network)
        return self._glance()

    def _glance(self) -> HostSnapshot:
        """Return what was read last."""
        kernel, memory = self._kernel.value, self._kernel.value.memory
        host = replace(  # once: a copy costs more than a reading
            self._described,
            online_cpus=kernel.online_cpus,
            cpu_millicores=1000 * len(kernel.online_cpus),
            pids_used=kernel.pids_used,
            nodefs=self._storage.value,
            memory_bytes=memory.total_bytes if memory else 0,
            memory_available_bytes=memory.total_bytes - memory.working_set_bytes if memory else None,
            swap_bytes=memory.swap_total_bytes if memory else 0,
        )
        self._last = limited(host, kernel.limits) if kernel.limits else host
        return self._last

    async def usage(self, detail: Detail) -> HostUsage:
        """Read what of the machine is in use, or of our own cgroup if the settings make that the machine."""
        usage = await self._usage.read(detail, self._last)
        if self._config.from_cgroup and usage.own:
            return replace(usage, root=usage.own)
        return usage

    def _kernel_sensors(self) -> Sensors[_Kernel]:
        files = self._files
        sensors: dict[str, Callable[[_Kernel], _Kernel]] = {
            "cpu": lambda kernel: replace(kernel, online_cpus=online_cpus(files)),
            "memory": lambda kernel: replace(kernel, memory=memory_usage(files)),
            "pids": lambda kernel: replace(kernel, pids_used=pids_used(files)),
        }
        if self._config.from_cgroup:
            sensors["cgroup"] = lambda kernel: replace(kernel, limits=own_limits(files))
        return sensors

    def _read_identity(self, host: HostSnapshot) -> HostSnapshot:
        return replace(
            host,
            machine_id=self._files.first(self._config.machine_id_files),
            system_uuid=system_uuid(self._files),
            boot_id=self._files.first(self._config.boot_id_files),
            cgroup_version=mounted_version(self._files),
            kernel_version=platform.release(),
            os_image=os_image(self._files),
        )
