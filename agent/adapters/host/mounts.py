"""The mounted filesystems that cAdvisor tells of, and the disks below them."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from agent.adapters.host.cgroup import root_version
from agent.adapters.host.files import HostFiles
from agent.adapters.host.machine import mounted
from agent.core.usage import BlockUsage, DiskActivity, MountUsage

# cAdvisor v0.56: the plugins in fs/, of which zfs without its own tools falls back to statfs
_KINDS = re.compile(
    r"ext.*|nfs.*|xfs|btrfs|zfs|tmpfs|overlay|squashfs|f2fs|jfs|reiserfs|hfs|hfsplus|ntfs|vfat|fat|msdos|exfat|udf|iso9660"
)
_DISKS = re.compile(r"(?:s|v|xv)d[a-z]+\d*|dm-\d+")  # fs/fs.go, partitionRegex: other disks are told as idle
_OCTAL = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    device: str
    point: str
    number: str  # major:minor


def mounts(files: HostFiles) -> tuple[MountUsage, ...]:
    """Each filesystem once, however often it is mounted; one that cannot be looked at is left out."""
    return tuple(_mounts(files))


def blocks(files: HostFiles) -> tuple[BlockUsage, ...]:
    """What each block device did; nothing but under cgroup v2."""
    if root_version(files) != 2:
        return ()
    names = {mount.number: mount.device for mount in _table(files)}
    return tuple(_blocks(files, names))


def _blocks(files: HostFiles, names: dict[str, str]) -> Iterator[BlockUsage]:
    for line in files.lines("sys/fs/cgroup/io.stat"):
        number, *pairs = line.split()
        did = dict(pair.split("=") for pair in pairs if "=" in pair)
        if "rbytes" in did:
            counters = (int(did[key]) for key in ("rbytes", "wbytes", "rios", "wios"))
            yield BlockUsage(names.get(number) or _disk(files, number), number, *counters)


def _disk(files: HostFiles, number: str) -> str:
    """The device of a number, but for those that cAdvisor takes for no disk."""
    with suppress(OSError):
        name = files.path(f"sys/dev/block/{number}").readlink().name
        return "" if name.startswith(("loop", "ram", "sr")) else f"/dev/{name}"
    return ""


def _mounts(files: HostFiles) -> Iterator[MountUsage]:
    disks = dict(_disks(files))
    for mount in {mount.device: mount for mount in _table(files)}.values():
        with suppress(OSError):
            activity = disks.get(mount.device) or disks.get(mount.number) or DiskActivity()
            yield MountUsage(mount.device, mounted(files.path(mount.point)), activity)


def _table(files: HostFiles) -> Iterator[_Mount]:
    """The mount table: ours, or that of the host's first process if its root is mounted somewhere."""
    ours, seen = files.path("/") == Path("/"), set()
    for line in files.lines("proc/self/mountinfo" if ours else "proc/1/mountinfo"):
        before, _, after = line.partition(" - ")
        _, _, number, _, point, *_ = before.split(" ")
        kind, source, *_ = after.split(" ")
        if not _KINDS.fullmatch(kind) or (source in seen and kind != "tmpfs"):
            continue
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), point)
        device = _device(kind, source, point, number)
        seen.add(device)
        yield _Mount(device, point, number)


def _device(kind: str, source: str, point: str, number: str) -> str:
    """What cAdvisor calls it: several filesystems of one kind would have the same source."""
    match kind:
        case "tmpfs":
            return point
        case "overlay":
            return f"{source}_{number.replace(':', '-')}"
        case _:
            return source


def _disks(files: HostFiles) -> Iterator[tuple[str, DiskActivity]]:
    """What each disk did, by its device and by its number."""
    for line in files.lines("proc/diskstats"):
        major, minor, name, *counters = line.split()
        if _DISKS.fullmatch(name):
            activity = DiskActivity(*(int(counter) for counter in counters[:11]))
            yield f"/dev/{name}", activity
            yield f"{major}:{minor}", activity
