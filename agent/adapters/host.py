"""The Linux machine: psutil, /proc, /sys and /etc → HostSnapshot."""

import asyncio
import os
import platform
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import psutil

from agent.core.model import DefaultRoute, Filesystem, HostSnapshot, Interface, IPAddress, Network

# Go's names of what uname(2) calls the machine
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386", "loongarch64": "loong64"}
_MACHINE_ID = ("etc/machine-id", "var/lib/dbus/machine-id")
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
)
_RESOLVER_SECONDS = 2.0
_RTF_UP, _RTF_GATEWAY = 0x1, 0x2


def architecture() -> str:
    """The machine's architecture in Go's spelling."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


class LinuxHost:
    """Reads the machine it runs on; blocking reads happen in a thread."""

    def __init__(self, *, node_name: str, root_dir: str, resolve: bool = True, root: Path = Path("/")) -> None:
        self._node_name = node_name
        self._root_dir = Path(root_dir)
        self._resolve = resolve  # needless where --node-ip is given
        self._root = root

    async def snapshot(self) -> HostSnapshot:
        """Read the machine once."""
        resolved = await self._node_name_addresses()
        return await asyncio.to_thread(self._read, resolved)

    async def _node_name_addresses(self) -> tuple[IPAddress, ...]:
        if not self._resolve:
            return ()
        try:
            async with asyncio.timeout(_RESOLVER_SECONDS):
                found = await asyncio.get_running_loop().getaddrinfo(self._node_name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # unknown name, or a resolver that does not answer in time
            return ()
        return tuple(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))

    def _read(self, resolved: tuple[IPAddress, ...]) -> HostSnapshot:
        memory = self._table("proc/meminfo")
        total_bytes = memory["MemTotal"] * 1024
        return HostSnapshot(
            cpus=psutil.cpu_count() or 1,
            memory_bytes=total_bytes,
            memory_available_bytes=total_bytes - self._working_set_bytes(memory),
            swap_bytes=memory.get("SwapTotal", 0) * 1024,
            hugepages_bytes=dict(self._hugepages()),
            nodefs=_filesystem(self._root_dir),
            pids_max=min(int(self._text("proc/sys/kernel/pid_max")), int(self._text("proc/sys/kernel/threads-max"))),
            pids_used=int(self._text("proc/loadavg").split()[3].partition("/")[2]),
            network=Network(
                interfaces=tuple(_interfaces()),
                default_routes=(*self._ipv4_default_routes(), *self._ipv6_default_routes()),
                node_name_addresses=resolved,
            ),
            machine_id=self._first(_MACHINE_ID),
            system_uuid=self._first(_SYSTEM_UUID),
            boot_id=self._text("proc/sys/kernel/random/boot_id"),
            kernel_version=platform.release(),
            os_image=self._os_image(),
            architecture=architecture(),
        )

    def _working_set_bytes(self, memory: dict[str, int]) -> int:
        """Memory in use less inactive page cache, of the root cgroup, as cAdvisor counts it."""
        v1, v2 = "sys/fs/cgroup/memory/memory.stat", "sys/fs/cgroup/memory.stat"
        if (self._root / v1).exists():
            usage = int(self._text("sys/fs/cgroup/memory/memory.usage_in_bytes"))
            return max(0, usage - self._table(v1)["total_inactive_file"])
        if (self._root / v2).exists():
            stat = self._table(v2)  # the v2 root has no memory.current
            return max(0, stat["anon"] + stat["file"] - stat["inactive_file"])
        return (memory["MemTotal"] - memory["MemAvailable"]) * 1024

    def _hugepages(self) -> Iterator[tuple[int, int]]:
        for folder in sorted((self._root / "sys/kernel/mm/hugepages").glob("hugepages-*kB")):
            size = int(folder.name.removeprefix("hugepages-").removesuffix("kB")) * 1024
            yield size, size * int((folder / "nr_hugepages").read_text())

    def _ipv4_default_routes(self) -> Iterator[DefaultRoute]:
        for line in self._lines("proc/net/route")[1:]:
            interface, destination, _, flags, *_ = line.split()
            if destination == "00000000" and int(flags, 16) & (_RTF_UP | _RTF_GATEWAY) == _RTF_UP | _RTF_GATEWAY:
                yield DefaultRoute(interface=interface, version=4)

    def _ipv6_default_routes(self) -> Iterator[DefaultRoute]:
        for line in self._lines("proc/net/ipv6_route"):
            fields = line.split()
            flags = int(fields[8], 16) & (_RTF_UP | _RTF_GATEWAY)
            if int(fields[0], 16) == 0 and fields[1] == "00" and flags == _RTF_UP | _RTF_GATEWAY:
                yield DefaultRoute(interface=fields[9], version=6)

    def _os_image(self) -> str:
        for name in ("etc/os-release", "usr/lib/os-release"):
            if lines := self._lines(name):
                pairs = dict(line.partition("=")[::2] for line in lines)
                return pairs.get("PRETTY_NAME", "Linux").strip("\"'")
        return "Unknown"

    def _first(self, names: tuple[str, ...]) -> str:
        for name in names:
            try:
                return self._text(name)
            except OSError:
                continue
        return ""

    def _table(self, name: str) -> dict[str, int]:
        """A file of `name value` or `name: value kB` lines."""
        fields = (line.replace(":", " ").split() for line in self._lines(name))
        return {field[0]: int(field[1]) for field in fields if len(field) > 1}

    def _lines(self, name: str) -> list[str]:
        try:
            return (self._root / name).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []

    def _text(self, name: str) -> str:
        return (self._root / name).read_text("utf-8").strip("\n\0 ")


def _filesystem(path: Path) -> Filesystem:
    """The filesystem that holds a directory, or will hold it once somebody makes it."""
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    stat = os.statvfs(existing)
    return Filesystem(
        capacity_bytes=stat.f_frsize * stat.f_blocks,
        available_bytes=stat.f_frsize * stat.f_bavail,
        inodes=stat.f_files,
        inodes_free=stat.f_ffree,
    )


def _interfaces() -> Iterator[Interface]:
    states = psutil.net_if_stats()
    for name, entries in psutil.net_if_addrs().items():
        ips = [
            entry.address.partition("%")[0] for entry in entries if entry.family in {socket.AF_INET, socket.AF_INET6}
        ]
        state = states.get(name)
        yield Interface(name=name, up=bool(state and state.isup), addresses=tuple(ip_address(ip) for ip in ips))
