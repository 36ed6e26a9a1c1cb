"""The machine as a whole, read in full or at a glance."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.adapters.clock import SystemClock
from agent.adapters.host.cgroup import limited, own_limits
from agent.adapters.host.deadline_reader import DeadlineReader
from agent.adapters.host.files import HostFiles
from agent.adapters.host.identity import architecture, identity
from agent.adapters.host.machine import cpus, filesystem, hugepages, memory, task_limit, tasks
from agent.adapters.host.network import default_routes, interfaces, resolve
from agent.adapters.host.sensor_metrics import SensorMetrics
from agent.adapters.host.usage import UsageReader
from agent.core.config import Config
from agent.core.metrics import Family
from agent.core.model import HostSnapshot, Network
from agent.core.usage import Detail, HostUsage
from agent.ports import Clock

_FIRST_DEADLINE_SECONDS = 10.0
_RESOLVER_SECONDS = 2.0


class LinuxHost:
    """Reads the machine it runs on; what blocks happens in threads, and within a deadline."""

    def __init__(self, config: Config, *, clock: Clock | None = None) -> None:
        files = HostFiles(Path(config.host_root))
        self._config = config
        self._files = files
        self._last = HostSnapshot(architecture=architecture())
        self._metrics = metrics = SensorMetrics()
        kernel = {"cpu": lambda: cpus(files), "memory": lambda: memory(files), "pids": lambda: tasks(files)}
        if config.resources.from_cgroup:
            kernel["cgroup"] = lambda: {"limits": own_limits(files)}
        # A machine that is slow to answer at first is not a machine without memory.
        self._kernel = DeadlineReader(kernel, first_deadline_seconds=_FIRST_DEADLINE_SECONDS, metrics=metrics)
        self._storage = DeadlineReader(
            {"nodefs": lambda: {"nodefs": filesystem(files.path(config.root_dir))}}, metrics=metrics
        )
        self._slow = DeadlineReader(
            {
                "identity": lambda: identity(files, config),
                "hugepages": lambda: hugepages(files),
                "pid limit": lambda: task_limit(files),
                "network": self._network,
            },
            first_deadline_seconds=_FIRST_DEADLINE_SECONDS,
            metrics=metrics,
        )
        self._resolver = DeadlineReader(
            {"resolver": lambda: {"addresses": resolve(config.node_name)}},
            deadline_seconds=_RESOLVER_SECONDS,
            metrics=metrics,
        )
        self._usage = UsageReader(files, clock or SystemClock(), metrics, root_dir=config.root_dir)

    @property
    def hangs(self) -> bool:
        """Whether some reading has not come back: a thread that cannot be waited for."""
        probes = (self._kernel, self._storage, self._slow, self._resolver)
        return self._usage.hangs or any(probe.hangs for probe in probes)

    def families(self) -> Iterator[Family]:
        """How the readings went, as metrics."""
        return self._metrics.families()

    async def glance(self) -> HostSnapshot:
        """What may change from one second to the next; the rest as it was."""
        values: dict[str, Any] = {**await self._kernel.read(), **await self._storage.read()}
        limits = values.pop("limits", None)
        self._last = replace(self._last, **values)
        if limits:
            self._last = limited(self._last, limits)
        return self._last

    async def snapshot(self) -> HostSnapshot:
        """Everything."""
        values = dict(await self._slow.read())
        if self._needs_resolver:
            network: Network = values.get("network", Network())
            addresses = (await self._resolver.read()).get("addresses", ())
            values["network"] = replace(network, node_name_addresses=addresses)
        self._last = replace(self._last, **values)
        return await self.glance()

    async def usage(self, detail: Detail) -> HostUsage:
        """What of the machine is in use, or of our own cgroup if that is to be the machine; read when somebody asks."""
        usage = await self._usage.read(detail, self._last)
        if self._config.resources.from_cgroup and usage.own:
            return replace(usage, root=usage.own)
        return usage

    @property
    def _needs_resolver(self) -> bool:
        return all(ip.is_unspecified for ip in self._config.node_ips)

    def _network(self) -> dict[str, object]:
        return {"network": Network(interfaces=interfaces(), default_routes=default_routes(self._files))}
