"""The machine, in figures that a test sets, and what the core is told of it."""

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from agent.controllers.host_monitor import HostMachine
from agent.controllers.state import NodeState
from agent.core.config import NodeConfig
from agent.core.model import DefaultRoute, Filesystem, HostSnapshot, Interface, Network
from agent.core.nodestatus import Facts
from agent.core.usage import CgroupUsage, Detail, HostUsage, MemoryUsage
from agent.ports import Host
from agent.process import Process
from tests import settings
from tests.fakes.clock import START, FakeClock

GIB = 2**30

FILESYSTEM = Filesystem(capacity_bytes=100, available_bytes=40, inodes=20, inodes_free=15, used_bytes=55)
MEMORY_USAGE = MemoryUsage(
    total_bytes=1000,
    usage_bytes=600,
    rss_bytes=200,
    cache_bytes=300,
    mapped_file_bytes=50,
    active_file_bytes=100,
    inactive_file_bytes=150,
    page_faults=7,
    major_page_faults=3,
    swap_total_bytes=80,
    swap_bytes=30,
)


class FakeHost:
    """A machine whose figures a test sets."""

    def __init__(self, clock: FakeClock | None = None, **changes: Any) -> None:
        self.current = host_snapshot(**changes)
        self.read_at: list[float] = []
        self._clock = clock or FakeClock()

    async def snapshot(self) -> HostSnapshot:
        self.read_at.append(self._clock.elapsed)
        return self.current

    async def glance(self) -> HostSnapshot:
        return self.current

    async def usage(self, detail: Detail) -> HostUsage:
        now = self._clock.now()
        return HostUsage(host=self.current, at=now, booted_at=START, root=CgroupUsage(since=START))


def new_state(process: Process, config: NodeConfig) -> NodeState:
    """The state of a node that a process would host."""
    engine = process.engine
    return NodeState(
        config,
        HostMachine(engine.monitor, config.eviction),
        engine.startup,
        engine.node_decoder,
        engine.dependencies.clock,
    )


def host_snapshot(**changes: Any) -> HostSnapshot:
    """A machine with 4 CPUs, 8 GiB of memory and a 100 GiB disk."""
    figures: dict[str, Any] = {
        "cpu_millicores": 4000,
        "online_cpus": frozenset(range(4)),
        "memory_bytes": 8 * GIB,
        "memory_available_bytes": 6 * GIB,
        "nodefs": Filesystem(capacity_bytes=100 * GIB, available_bytes=60 * GIB, inodes=1000, inodes_free=900),
        "pids_max": 32768,
        "pids_used": 300,
        "network": Network(
            interfaces=(interface("lo", "127.0.0.1"), interface("eth0", "192.0.2.10", "2001:db8::10")),
            default_routes=(DefaultRoute(interface="eth0", version=4),),
        ),
        "machine_id": "machine",
        "system_uuid": "system",
        "boot_id": "boot-1",
        "kernel_version": "6.1.0",
        "os_image": "Debian",
    }
    return HostSnapshot(**(figures | changes))


def interface(name: str, *addresses: str, up: bool = True) -> Interface:
    """A network interface."""
    return Interface(name=name, up=up, addresses=tuple(ip_address(address) for address in addresses))


def facts(**changes: Any) -> Facts:
    """Facts about a healthy node that was never seen before."""
    given: dict[str, Any] = {
        "config": settings.NodeConfig(node_name="n1"),
        "host": host_snapshot(),
        "observed": {},
        "pressure": frozenset(),
        "problems": (),
        "now": START,
    }
    return Facts(**(given | changes))


if TYPE_CHECKING:
    _: Host = FakeHost()
