"""The mounted filesystems that cAdvisor reports, and the disks below them."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles, filesystem_at
from agent.core.usage import BlockUsage, DiskActivity, MountUsage

# cAdvisor v0.56: the plugins in fs/, of which zfs without its own tools falls back to statfs
_KINDS = re.compile(
    r"ext.*|nfs.*|xfs|btrfs|zfs|tmpfs|overlay|squashfs|f2fs|jfs|reiserfs|hfs|hfsplus|ntfs|vfat|fat|msdos|exfat|udf|iso9660"
)
_DISKS = re.compile(r"(?:s|v|xv)d[a-z]+\d*|dm-\d+")  # fs/fs.go, partitionRegex: other disks are reported as idle
_OCTAL = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    device: str
    point: str
    number: str  # major:minor


def mounts(files: HostFiles) -> tuple[MountUsage, ...]:
    """Return each filesystem once, however often it is mounted, without those that cannot be read."""
    return tuple(_mounts(files))


def blocks(files: HostFiles) -> tuple[BlockUsage, ...]:
    """Return what each block device did; empty without cgroup v2."""
    if root_version(files) != 2:
        return ()
    names = {mount.number: mount.device for mount in _table(files)}
    return tuple(_blocks(files, names))


def _blocks(files: HostFiles, names: dict[str, str]) -> Iterator[BlockUsage]:
    for line in files.lines("sys/fs/cgroup/io.stat"):
        number, *pairs = line.split()
        stat = dict(pair.split("=") for pair in pairs if "=" in pair)
        if "rbytes" in stat:
            counters = (int(stat[key]) for key in ("rbytes", "wbytes", "rios", "wios"))
            yield BlockUsage(names.get(number) or _disk(files, number), number, *counters)


def _disk(files: HostFiles, number: str) -> str:
    """Return the device of a number; empty for those that cAdvisor does not take for a disk."""
    with suppress(OSError):
        name = files.path(f"sys/dev/block/{number}").readlink().name
        return "" if name.startswith(("loop", "ram", "sr")) else f"/dev/{name}"
    return ""


def _mounts(files: HostFiles) -> Iterator[MountUsage]:
    disks = dict(_disks(files))
    for mount in {mount.device: mount for mount in _table(files)}.values():
        with suppress(OSError):
            activity = disks.get(mount.device) or disks.get(mount.number) or DiskActivity()
            yield MountUsage(mount.device, filesystem_at(files.path(mount.point)), activity)


def _table(files: HostFiles) -> Iterator[_Mount]:
    """Read our mount table, or that of the host's process 1 if the host's root is mounted somewhere."""
    ours, seen = files.path("/") == Path("/"), set()
    for line in files.lines("proc/self/mountinfo" if ours else "proc/1/mountinfo"):
        before, _, after = line.partition(" - ")
        _, _, number, _, point, *_ = before.split(" ")
        kind, source, *_ = after.split(" ")
        if not _KINDS.fullmatch(kind) or (source in seen and kind != "tmpfs"):
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), point)
        device = _device(kind, source, point, number)
        seen.add(device)
        yield _Mount(device, point, number)


def _device(kind: str, source: str, point: str, number: str) -> str:
    """Return cAdvisor's name of a filesystem: several of one kind may have the same source."""
    match kind:
        case "tmpfs":
            return point
        case "overlay":
            return f"{source}_{number.replace(':', '-')}"
        case _:
            return source


def _disks(files: HostFiles) -> Iterator[tuple[str, DiskActivity]]:
    """Return what each disk did, by its device and by its number."""
    for line in files.lines("proc/diskstats"):
        major, minor, name, *counters = line.split()
        if _DISKS.fullmatch(name):
            activity = DiskActivity(*(int(counter) for counter in counters[:11]))
            yield f"/dev/{name}", activity
            yield f"{major}:{minor}", activity
