import os
from pathlib import Path

import psutil
import pytest

from agent.adapters.host import LinuxHost
from agent.adapters.host.files import HostFiles
from agent.core.model import DefaultRoute
from tests.fakes import until
from tests.settings import HostConfig

pytestmark = pytest.mark.anyio

TREE = {
    "proc/meminfo": "MemTotal:       8000000 kB\nMemAvailable:   6000000 kB\nSwapTotal:      1000 kB\n",
    "proc/sys/kernel/pid_max": "4194304\n",
    "proc/sys/kernel/threads-max": "30000\n",
    "proc/sys/kernel/random/boot_id": "b00t\n",
    "proc/loadavg": "0.01 0.02 0.03 2/345 6789\n",
    "proc/net/route": "Iface\tDestination\tGateway\tFlags\n"
    "eth0\t00000000\t010200C0\t0003\t0\neth0\t000200C0\t00000000\t0001\t0\n",
    "proc/net/ipv6_route": "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
    "20010db8000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
    "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n",
    "etc/machine-id": "m4chine\n",
    "etc/os-release": 'NAME="X"\nPRETTY_NAME="X Linux 1"\n',
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
    "sys/devices/system/cpu/online": "0-1,3\n",
}
CGROUP_V1 = {
    "sys/fs/cgroup/memory/cgroup.sane_behavior": "0\n",  # the mark of a root
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000000\n",
    "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 2000000\n",
}
CGROUP_V2 = {
    "sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n",
    "sys/fs/cgroup/memory.stat": "anon 1000000\nfile 900000\ninactive_file 400000\nslab 7\n",
}
OF_A_CONTAINER = CGROUP_V2 | {"sys/fs/cgroup/cgroup.type": "domain\n"}  # a root has no type
MEM_TOTAL = 8000000 * 1024


def write(root: Path, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def host_at(root, **settings):
    return LinuxHost(HostConfig(root=str(root), **settings))


async def snapshot(root: Path, files, **settings):
    write(root, files)
    return await host_at(root, **settings).snapshot()


async def test_the_machine_is_read_from_its_files(tmp_path):
    host = await snapshot(tmp_path, TREE)
    assert (host.memory_bytes, host.swap_bytes) == (MEM_TOTAL, 1000 * 1024)
    assert (host.pids_max, host.pids_used) == (30000, 345)
    assert host.hugepages_bytes == {2 * 2**20: 6 * 2**20}
    assert (host.cpu_millicores, host.online_cpus) == (3000, {0, 1, 3})
    assert (host.machine_id, host.boot_id, host.os_image) == ("m4chine", "b00t", "X Linux 1")


@pytest.mark.parametrize(
    ("cgroup", "used"),
    [(CGROUP_V1, 3000000), (CGROUP_V2, 1500000), (OF_A_CONTAINER, 2000000 * 1024), ({}, 2000000 * 1024)],
    ids=["cgroup v1", "cgroup v2", "only the cgroup of a container", "no cgroup"],
)
async def test_available_memory_is_total_less_the_working_set(tmp_path, cgroup, used):
    host = await snapshot(tmp_path, TREE | cgroup)
    assert host.memory_available_bytes == MEM_TOTAL - used


@pytest.mark.parametrize(
    ("cgroup", "version"),
    [(CGROUP_V1, 1), (CGROUP_V2, 2), (OF_A_CONTAINER, 2), ({}, 0)],
    ids=["cgroup v1", "cgroup v2", "only the cgroup of a container", "no cgroup"],
)
async def test_the_version_of_cgroups_is_that_of_what_is_mounted(tmp_path, cgroup, version):
    assert (await snapshot(tmp_path, TREE | cgroup)).cgroup_version == version


async def test_default_routes_are_those_that_a_kubelet_sees(tmp_path):
    on_link = TREE["proc/net/route"] + "wg0\t00000000\t00000000\t0001\t0\n"  # as of a tunnel
    host = await snapshot(tmp_path, TREE | {"proc/net/route": on_link})
    assert host.network.default_routes == (
        DefaultRoute(interface="eth0", version=4),
        DefaultRoute(interface="wg0", version=4),
        DefaultRoute(interface="eth1", version=6),
    )


async def test_ids_are_in_the_first_of_the_given_files_that_can_be_read(tmp_path):
    given = {"machine_id_files": ("/no", "/etc", "/my/id"), "boot_id_files": ("/my/boot", "/my/id")}
    host = await snapshot(tmp_path, TREE | {"my/id": "mine\n", "my/boot": "booted\n"}, **given)
    assert (host.machine_id, host.boot_id) == ("mine", "booted")
    assert (await snapshot(tmp_path, TREE, machine_id_files=("/no",))).machine_id == ""


async def test_without_dmi_the_system_uuid_is_the_machine_id(tmp_path):
    assert (await snapshot(tmp_path, TREE)).system_uuid == "m4chine"
    dmi = {"sys/class/dmi/id/product_uuid": "D-M-I\n"}
    assert (await snapshot(tmp_path, TREE | dmi)).system_uuid == "D-M-I"


@pytest.mark.parametrize(("content", "image"), [('NAME="X"\n', "Linux"), (None, "Unknown")])
async def test_an_os_without_a_pretty_name(tmp_path, content, image):
    files = {name: text for name, text in TREE.items() if name != "etc/os-release"}
    assert (await snapshot(tmp_path, files | ({"etc/os-release": content} if content else {}))).os_image == image


async def test_storage_is_the_filesystem_that_would_hold_the_root_dir(tmp_path):
    host = await host_at("/", root_dir=str(tmp_path / "not" / "there")).snapshot()
    stat = os.statvfs(tmp_path)
    assert host.nodefs.capacity_bytes == stat.f_frsize * stat.f_blocks
    assert not (tmp_path / "not").exists()


async def test_the_real_machine_agrees_with_psutil():
    host = await LinuxHost(HostConfig(resolved_name="localhost", root_dir="/")).snapshot()
    assert host.memory_bytes == psutil.virtual_memory().total
    assert host.cpu_millicores == 1000 * psutil.cpu_count()
    assert 0 < host.memory_available_bytes < host.memory_bytes
    assert "127.0.0.1" in {str(ip) for interface in host.network.interfaces for ip in interface.addresses}
    assert "127.0.0.1" in {str(ip) for ip in host.network.node_name_addresses}


async def test_a_name_that_nobody_knows_has_no_addresses():
    host = await LinuxHost(HostConfig(resolved_name="no-such-name.invalid")).snapshot()
    assert host.network.node_name_addresses == ()


V2_LIMITS = {
    "proc/self/cgroup": "0::/box\n",
    "sys/fs/cgroup/box/memory.max": "2000000\n",
    "sys/fs/cgroup/box/memory.current": "900000\n",
    "sys/fs/cgroup/box/memory.stat": "inactive_file 100000\n",
    "sys/fs/cgroup/box/cpu.max": "150000 100000\n",
}
V1_LIMITS = {
    "proc/self/cgroup": "3:cpu,cpuacct:/box\n2:memory:/box\n",
    "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "2000000\n",
    "sys/fs/cgroup/memory/box/memory.usage_in_bytes": "900000\n",
    "sys/fs/cgroup/memory/box/memory.stat": "total_inactive_file 100000\n",
    "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
}
UNLIMITED = {
    "sys/fs/cgroup/box/memory.max": "max\n",
    "sys/fs/cgroup/box/cpu.max": "max 100000\n",
    "sys/fs/cgroup/memory/box/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "-1\n",
}


@pytest.mark.parametrize(
    ("limits", "root"), [(V2_LIMITS, CGROUP_V2), (V1_LIMITS, CGROUP_V1)], ids=["cgroup v2", "cgroup v1"]
)
async def test_a_containers_own_limits_can_be_told_instead(tmp_path, limits, root):
    host = await snapshot(tmp_path, TREE | root | limits, from_cgroup=True)
    assert (host.cpu_millicores, host.memory_bytes, host.memory_available_bytes) == (1500, 2000000, 1200000)
    unlimited = {name: text for name, text in UNLIMITED.items() if name in limits}
    host = await snapshot(tmp_path, unlimited, from_cgroup=True)
    assert (host.cpu_millicores, host.memory_bytes) == (3000, MEM_TOTAL)
    host = await snapshot(tmp_path, limits)
    assert (host.cpu_millicores, host.memory_bytes) == (3000, MEM_TOTAL)


LIMITED_TO_ONE_CPU = {
    "proc/self/cgroup": "4:cpuset:/box\n3:cpu,cpuacct:/box\n2:memory:/box\n0::/box\n",
    "sys/fs/cgroup/box/cpuset.cpus.effective": "3\n",
    "sys/fs/cgroup/cpuset/box/cpuset.effective_cpus": "3\n",
}


@pytest.mark.parametrize(
    ("limits", "root"), [(V2_LIMITS, CGROUP_V2), (V1_LIMITS, CGROUP_V1)], ids=["cgroup v2", "cgroup v1"]
)
async def test_a_container_may_be_limited_to_some_cpus(tmp_path, limits, root):
    host = await snapshot(tmp_path, TREE | root | limits | LIMITED_TO_ONE_CPU, from_cgroup=True)
    assert host.cpu_millicores == 1000


async def test_the_root_of_cgroup_v2_has_no_limits(tmp_path, caplog):
    files = TREE | CGROUP_V2 | {"proc/self/cgroup": "0::/\n"}
    host = await snapshot(tmp_path, files, from_cgroup=True)
    assert (host.cpu_millicores, host.memory_bytes) == (3000, MEM_TOTAL)
    assert not caplog.records


async def test_a_file_that_the_kernel_hands_out_in_pieces_is_read_to_its_end():
    assert "[stack]" in HostFiles(Path("/")).text("proc/self/smaps")


async def test_cpus_that_cannot_be_read_do_not_cost_the_memory(tmp_path):
    host = await snapshot(tmp_path, TREE | {"sys/devices/system/cpu/online": "nonsense\n"})
    assert (host.cpu_millicores, host.memory_bytes) == (0, MEM_TOTAL)


async def test_a_reading_that_fails_costs_itself_and_is_said_once(tmp_path, caplog):
    write(tmp_path, TREE)
    host = host_at(tmp_path)
    first = await host.glance()
    (tmp_path / "proc/loadavg").write_text("nonsense\n")
    write(tmp_path, {"proc/meminfo": TREE["proc/meminfo"].replace("8000000", "9000000")})
    later = [await host.glance() for _ in range(3)][-1]
    assert later.pids_used == first.pids_used
    assert later.memory_bytes == 9000000 * 1024
    assert [record.args["sensor"] for record in caplog.records] == ["pids"]
    write(tmp_path, TREE)
    await host.glance()
    assert (await host.glance()).memory_bytes == MEM_TOTAL


async def test_a_reading_that_hangs_costs_its_deadline_once_and_the_last_value_stands(tmp_path, caplog):
    write(tmp_path, TREE)
    host = host_at(tmp_path)
    first = await host.glance()
    (tmp_path / "proc/loadavg").unlink()
    os.mkfifo(tmp_path / "proc/loadavg")  # opening it blocks, as reading a dead disk does
    for _ in range(5):
        assert (await host.glance()).pids_used == first.pids_used
    assert host.hangs
    assert [record.msg for record in caplog.records] == ["Host does not answer, keeping its last values"]
    (tmp_path / "proc/loadavg").write_text(TREE["proc/loadavg"])  # the reader gets its data
    await until(lambda: not host.hangs)


async def test_a_machine_that_tells_nothing_is_a_machine_without_capacity(tmp_path):
    host = await host_at(tmp_path).snapshot()
    assert (host.cpu_millicores, host.memory_bytes, host.memory_available_bytes) == (0, 0, None)
