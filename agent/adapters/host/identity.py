"""Who the machine is."""

import platform
from datetime import UTC, datetime

import psutil

from agent.adapters.host.cgroup import mounted_version
from agent.adapters.host.files import HostFiles
from agent.core.config import Config

# Go's names of what uname(2) calls the machine
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386", "loongarch64": "loong64"}
_SYSTEM_UUID = (
    "sys/class/dmi/id/product_uuid",
    "proc/device-tree/system-id",
    "proc/device-tree/vm,uuid",
    "etc/machine-id",
)


def architecture() -> str:
    """The machine's architecture in Go's spelling."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def booted_at() -> datetime:
    """When this machine came up."""
    return datetime.fromtimestamp(psutil.boot_time(), UTC)


def identity(files: HostFiles, config: Config) -> dict[str, object]:
    """IDs, cgroups, kernel and operating system, as fields of HostSnapshot."""
    return {
        "machine_id": files.first(config.machine_id_files),
        "system_uuid": files.first(_SYSTEM_UUID),
        "boot_id": files.first(config.boot_id_files),
        "cgroup_version": mounted_version(files),
        "kernel_version": platform.release(),
        "os_image": _os_image(files),
    }


def _os_image(files: HostFiles) -> str:
    for name in ("etc/os-release", "usr/lib/os-release"):
        if lines := files.lines(name):
            pairs = dict(line.partition("=")[::2] for line in lines)
            return pairs.get("PRETTY_NAME", "Linux").strip("\"'")
    return "Unknown"
