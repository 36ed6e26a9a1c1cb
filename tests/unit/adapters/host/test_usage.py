import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.adapters.host import LinuxHost
from agent.core.usage import Detail, Pressure, Processes, Stall
from tests.fakes import FakeClock
from tests.settings import HostConfig

pytestmark = pytest.mark.anyio

KIB = 1024
TREE = {
    "proc/meminfo": "MemTotal: 8000 kB\nMemFree: 1000 kB\nMemAvailable: 6000 kB\nCached: 4000 kB\nAnonPages: 900 kB\n"
    "Mapped: 70 kB\nSwapTotal: 100 kB\nSwapFree: 60 kB\n",
    "proc/vmstat": "pgfault 77\npgmajfault 7\noom_kill 2\n",
    "proc/stat": "cpu  100 10 50 9999 9 3 2 0 0 0\ncpu0 1 1 1\nintr 5\nbtime 1700000000\n",
    "proc/loadavg": "0.01 0.02 0.03 2/345 6789\n",
    "proc/cpuinfo": "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\n"
    "processor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n",
    "proc/1/limits": "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n",
    "proc/1/net/dev": "Inter-| Receive | Transmit\n face |bytes ...\n"
    "    lo: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n"
    "  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n"
    "vethab: 9 9 9 9 0 0 0 0 9 9 9 9 0 0 0 0\n",
    "proc/diskstats": " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12\n 259 0 nvme0n1 1 1 1 1 1 1 1 1 1 1 1\n",
    "proc/pressure/cpu": "some avg10=1.50 avg60=2.00 avg300=0.25 total=7\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n",
    "sys/devices/system/cpu/online": "0-1\n",
}
V1 = {
    "sys/fs/cgroup/memory/cgroup.sane_behavior": "0\n",
    "sys/fs/cgroup/memory/cgroup.clone_children": "0\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "500000\n",
    "sys/fs/cgroup/memory/memory.max_usage_in_bytes": "900000\n",
    "sys/fs/cgroup/memory/memory.kmem.usage_in_bytes": "4000\n",
    "sys/fs/cgroup/memory/memory.failcnt": "2\n",
    "sys/fs/cgroup/memory/memory.stat": "rss 1\ninactive_file 1\npgfault 31\npgmajfault 3\n"
    "total_rss 100\ntotal_cache 200\n"
    "total_mapped_file 20\ntotal_active_file 30\ntotal_inactive_file 40\ntotal_swap 50\ntotal_pgfault 999\n",
    "sys/fs/cgroup/cpuacct/cpuacct.usage": "123456789012\n",
    "sys/fs/cgroup/cpuacct/cpuacct.stat": "user 1000\nsystem 200\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu/cpu.shares": "1024\n",
    "sys/fs/cgroup/cpu/cgroup.procs": "1\n2\n3\n",
}
V2 = {
    "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n",
    "sys/fs/cgroup/cgroup.procs": "2\n3\n",
    "sys/fs/cgroup/memory.stat": "anon 100\nfile 200\nkernel 9\nfile_mapped 20\nactive_file 30\ninactive_file 40\n"
    "pgfault 31\npgmajfault 3\n",
    "sys/fs/cgroup/cpu.stat": "usage_usec 123456789\nuser_usec 1000\nsystem_usec 200\nnr_periods 0\n",
    "sys/fs/cgroup/cpu.pressure": TREE["proc/pressure/cpu"],
}
PRESSURE = Pressure(some=Stall(7, 1.5, 2.0, 0.25), full=Stall(3))


def write(root: Path, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def host_at(root):
    return LinuxHost(HostConfig(root=str(root), root_dir="/"))


async def usage_of(root, *trees, detail=Detail.MOUNTS):
    for tree in trees:
        write(root, tree)
    return await host_at(root).usage(detail)


async def test_cgroup_v1(tmp_path):
    usage = await usage_of(tmp_path, TREE, V1)
    cpu, memory = usage.root.cpu, usage.root.memory
    assert (cpu.total_ns, cpu.user_ns, cpu.system_ns) == (123456789012, 10 * 10**9, 2 * 10**9)
    assert (cpu.period_us, cpu.shares) == (100000, 1024)
    assert (memory.usage_bytes, memory.working_set_bytes, memory.rss_bytes) == (500000, 499960, 100)
    assert (memory.cache_bytes, memory.mapped_file_bytes, memory.swap_bytes) == (200, 20, 50)
    assert (memory.page_faults, memory.major_page_faults) == (31, 3)  # its own, not its children's: as cAdvisor
    assert (memory.kernel_bytes, memory.peak_bytes, memory.failures) == (4000, 900000, 2)
    assert (memory.total_bytes, memory.swap_total_bytes) == (8000 * KIB, 100 * KIB)
    assert usage.processes == Processes(processes=3, threads=0, open_files_limit=1024, oom_kills=2)
    assert cpu.pressure is None  # as in cAdvisor, though the kernel has it


async def test_cgroup_v2(tmp_path):
    usage = await usage_of(tmp_path, TREE, V2)
    cpu, memory = usage.root.cpu, usage.root.memory
    assert (cpu.total_ns, cpu.user_ns, cpu.system_ns) == (123456789000, 1000000, 200000)
    assert (memory.usage_bytes, memory.working_set_bytes, memory.rss_bytes) == (300, 260, 100)
    assert memory.swap_bytes == 40 * KIB  # the root has no swap file of its own
    assert (memory.kernel_bytes, memory.peak_bytes, memory.failures) == (0, 0, 0)
    assert usage.processes == Processes(processes=2, threads=2, open_files_limit=1024, oom_kills=2)
    assert cpu.pressure == PRESSURE
    assert memory.pressure is None  # a file that is not there


@pytest.mark.parametrize("tree", [{}, V2 | {"sys/fs/cgroup/cgroup.type": "domain\n"}], ids=["none", "a container's"])
async def test_without_the_root_cgroup_the_machine_itself_is_asked(tmp_path, tree):
    usage = await usage_of(tmp_path, TREE, tree)
    cpu, memory = usage.root.cpu, usage.root.memory
    assert (cpu.user_ns, cpu.system_ns, cpu.total_ns) == (1_100_000_000, 550_000_000, 1_650_000_000)
    assert cpu.pressure == PRESSURE
    assert memory.usage_bytes == 7000 * KIB
    assert memory.working_set_bytes == 2000 * KIB  # all but what is available
    assert (memory.rss_bytes, memory.cache_bytes, memory.page_faults) == (900 * KIB, 4000 * KIB, 77)
    assert usage.processes is None


OWN = {
    "proc/self/cgroup": "0::/system.slice/ours\n",
    "sys/fs/cgroup/system.slice/ours/cpu.stat": "usage_usec 5\nuser_usec 3\nsystem_usec 2\n",
    "sys/fs/cgroup/system.slice/ours/memory.current": "1000\n",
    "sys/fs/cgroup/system.slice/ours/memory.max": "max\n",
    "sys/fs/cgroup/system.slice/ours/memory.stat": "anon 1\nfile 2\ninactive_file 400\n",
    "sys/fs/cgroup/system.slice/ours/memory.swap.current": "7\n",
    "sys/fs/cgroup/system.slice/ours/memory.swap.max": "90\n",
}


async def test_the_cgroup_we_run_in(tmp_path):
    own = (await usage_of(tmp_path, TREE, V2, OWN, detail=Detail.COUNTERS)).own
    assert (own.cpu.total_ns, own.cpu.nanocores) == (5000, 0)
    assert (own.memory.usage_bytes, own.memory.working_set_bytes) == (1000, 600)
    assert (own.memory.total_bytes, own.memory.swap_total_bytes, own.memory.swap_bytes) == (2**64 - 1, 90, 7)


async def test_our_own_cgroup_can_be_told_as_the_machine(tmp_path):
    write(tmp_path, TREE | V2 | OWN)
    config = HostConfig(root=str(tmp_path), from_cgroup=True)
    usage = await LinuxHost(config).usage(Detail.COUNTERS)
    assert (usage.root.cpu.total_ns, usage.root.memory.working_set_bytes) == (5000, 600)


async def test_a_root_cgroup_from_before_the_boot_began_in_its_minute(tmp_path):
    write(tmp_path, TREE | V2)
    os.utime(tmp_path / "sys/fs/cgroup", (0, 0))  # the clock has been set since
    usage = await host_at(tmp_path).usage(Detail.COUNTERS)
    assert (usage.booted_at.timestamp(), usage.root.since.timestamp()) == (1700000000, 1700000000 // 60 * 60)


@pytest.mark.parametrize("tree", [V2 | {"proc/self/cgroup": "0::/\n"}, V1], ids=["the root", "cgroup v1"])
async def test_no_cgroup_of_our_own(tmp_path, tree):
    assert (await usage_of(tmp_path, TREE, tree, detail=Detail.COUNTERS)).own is None


async def test_interfaces_that_are_not_the_machines_are_not_told(tmp_path):
    (eth0,) = (await usage_of(tmp_path, TREE, detail=Detail.COUNTERS)).interfaces
    assert eth0 == ("eth0", 1, 2, 3, 4, 5, 6, 7, 8)


async def test_the_machine(tmp_path):
    usage = await usage_of(tmp_path, TREE, V1, detail=Detail.NODE)
    assert usage.booted_at == datetime.fromtimestamp(1700000000, UTC)
    assert usage.root.since > usage.booted_at
    assert (usage.physical_cores, usage.sockets) == (1, 1)
    assert usage.pids_used == 345


MOUNTS = """\
22 27 0:21 / /proc rw - proc proc rw
27 1 254:0 / /disk\\040one rw,relatime shared:1 - ext4 /dev/vda rw
28 27 254:0 /sub /again rw - ext4 /dev/vda rw
29 27 0:25 / /ram/a rw - tmpfs tmpfs rw
30 27 0:26 / /ram/b rw - tmpfs tmpfs rw
31 27 0:45 / /layers rw - overlay overlay rw
32 27 0:46 / /layers rw - overlay overlay rw
33 27 259:0 / /fast rw - xfs /dev/nvme0n1 rw
34 27 0:50 / /gone rw - nfs4 server:/export rw
"""


async def test_a_filesystem_is_told_once_by_the_name_cadvisor_gives_it(tmp_path):
    write(tmp_path, TREE | {"proc/1/mountinfo": MOUNTS})
    for name in ("disk one", "again", "ram/a", "ram/b", "layers", "fast"):
        (tmp_path / name).mkdir(parents=True)
    mounts = {mount.device: mount for mount in (await host_at(tmp_path).usage(Detail.MOUNTS)).mounts}
    assert list(mounts) == ["/dev/vda", "/ram/a", "/ram/b", "overlay_0-45", "overlay_0-46", "/dev/nvme0n1"]
    assert mounts["/dev/vda"].activity == (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    assert set(mounts["/dev/nvme0n1"].activity) == {0}  # cAdvisor does not know such disks
    assert mounts["/dev/vda"].filesystem.capacity_bytes == os.statvfs(tmp_path).f_frsize * os.statvfs(tmp_path).f_blocks


async def test_who_wants_counters_only_does_not_touch_the_disk(tmp_path):
    write(tmp_path, TREE | {"proc/1/mountinfo": MOUNTS})
    usage = await host_at(tmp_path).usage(Detail.COUNTERS)
    assert usage.root.cpu
    assert (usage.nodefs, usage.mounts, usage.processes) == (None, (), None)


async def test_the_first_to_ask_is_told_a_rate_too(tmp_path):
    write(tmp_path, TREE | V1)

    class Busy(FakeClock):
        async def sleep(self, seconds):
            self.elapsed += seconds
            write(tmp_path, {"sys/fs/cgroup/cpuacct/cpuacct.usage": str(123456789012 + int(2e9 * seconds))})

    clock = Busy()
    host = LinuxHost(HostConfig(root=str(tmp_path)), clock=clock)
    assert (await host.usage(Detail.COUNTERS)).root.cpu.nanocores == 2 * 10**9
    waited = clock.monotonic()
    assert 0 < waited <= 0.5
    clock.elapsed += 15
    assert (await host.usage(Detail.COUNTERS)).root.cpu.nanocores < 10**9  # idle since
    assert clock.monotonic() == waited + 15  # nobody waited


async def test_a_hung_mount_costs_the_mounts_and_not_the_rest(tmp_path, caplog):
    write(tmp_path, TREE | V1)
    os.mkfifo(tmp_path / "proc/diskstats.fifo")
    (tmp_path / "proc/diskstats").unlink()
    (tmp_path / "proc/diskstats").symlink_to("diskstats.fifo")  # opening it blocks, as a dead disk does
    host = host_at(tmp_path)
    try:
        for _ in range(3):
            usage = await host.usage(Detail.MOUNTS)
            assert usage.root.cpu
            assert usage.root.memory
            assert usage.mounts == ()
        assert host.hangs
        waits = [record for record in caplog.records if record.msg.startswith("Host does not answer")]
        assert len(waits) == 1  # for three questions
    finally:
        (tmp_path / "proc/diskstats.fifo").write_text("")  # the reader gets its data


async def test_those_who_ask_at_once_are_all_told(tmp_path):
    write(tmp_path, TREE | V1)
    host = host_at(tmp_path)
    answers = await asyncio.gather(*(host.usage(Detail.COUNTERS) for _ in range(5)))
    assert all(answer.root.cpu and answer.root.memory for answer in answers)


async def test_a_machine_that_tells_nothing_has_no_figures(tmp_path):
    usage = await host_at(tmp_path).usage(Detail.MOUNTS)
    assert (usage.root.cpu, usage.root.memory, usage.mounts) == (None, None, ())


async def test_this_machine_has_figures():
    usage = await LinuxHost(HostConfig(root_dir="/")).usage(Detail.NODE)
    assert usage.root.cpu.total_ns >= usage.root.cpu.user_ns > 0
    assert 0 < usage.root.memory.working_set_bytes < usage.root.memory.total_bytes
    assert usage.nodefs.used_bytes > 0
    assert usage.booted_at < usage.at
