import os
from pathlib import Path

import psutil
import pytest

from agent.adapters.host import LinuxHost
from agent.core.model import DefaultRoute

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
}
CGROUP_V1 = {
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "5000000\n",
    "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 2000000\n",
}
CGROUP_V2 = {"sys/fs/cgroup/memory.stat": "anon 1000000\nfile 900000\ninactive_file 400000\nslab 7\n"}
MEM_TOTAL = 8000000 * 1024


async def snapshot(root: Path, files):
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return await LinuxHost(node_name="n1", root_dir=str(root), resolve=False, root=root).snapshot()


async def test_the_machine_is_read_from_its_files(tmp_path):
    host = await snapshot(tmp_path, TREE)
    assert (host.memory_bytes, host.swap_bytes) == (MEM_TOTAL, 1000 * 1024)
    assert (host.pids_max, host.pids_used) == (30000, 345)
    assert host.hugepages_bytes == {2 * 2**20: 6 * 2**20}
    assert (host.machine_id, host.boot_id, host.os_image) == ("m4chine", "b00t", "X Linux 1")


@pytest.mark.parametrize(
    ("cgroup", "used"),
    [(CGROUP_V1, 3000000), (CGROUP_V2, 1500000), ({}, 2000000 * 1024)],
    ids=["cgroup v1", "cgroup v2", "no cgroup"],
)
async def test_available_memory_is_total_less_the_working_set(tmp_path, cgroup, used):
    host = await snapshot(tmp_path, TREE | cgroup)
    assert host.memory_available_bytes == MEM_TOTAL - used


async def test_default_routes_have_a_gateway(tmp_path):
    host = await snapshot(tmp_path, TREE)
    assert host.network.default_routes == (
        DefaultRoute(interface="eth0", version=4),
        DefaultRoute(interface="eth1", version=6),
    )


async def test_without_dmi_the_system_uuid_is_the_machine_id(tmp_path):
    assert (await snapshot(tmp_path, TREE)).system_uuid == "m4chine"
    dmi = {"sys/class/dmi/id/product_uuid": "D-M-I\n"}
    assert (await snapshot(tmp_path, TREE | dmi)).system_uuid == "D-M-I"


@pytest.mark.parametrize(("content", "image"), [('NAME="X"\n', "Linux"), (None, "Unknown")])
async def test_an_os_without_a_pretty_name(tmp_path, content, image):
    files = {name: text for name, text in TREE.items() if name != "etc/os-release"}
    assert (await snapshot(tmp_path, files | ({"etc/os-release": content} if content else {}))).os_image == image


async def test_storage_is_the_filesystem_that_would_hold_the_root_dir(tmp_path):
    missing = tmp_path / "not" / "there"
    host = await LinuxHost(node_name="n1", root_dir=str(missing), resolve=False).snapshot()
    stat = os.statvfs(tmp_path)
    assert host.nodefs.capacity_bytes == stat.f_frsize * stat.f_blocks
    assert not missing.exists()


async def test_the_real_machine_agrees_with_psutil():
    host = await LinuxHost(node_name="localhost", root_dir="/").snapshot()
    assert host.memory_bytes == psutil.virtual_memory().total
    assert host.cpus == psutil.cpu_count()
    assert 0 < host.memory_available_bytes < host.memory_bytes
    assert "127.0.0.1" in {str(ip) for interface in host.network.interfaces for ip in interface.addresses}
    assert "127.0.0.1" in {str(ip) for ip in host.network.node_name_addresses}


async def test_a_name_that_nobody_knows_has_no_addresses():
    host = await LinuxHost(node_name="no-such-name.invalid", root_dir="/").snapshot()
    assert host.network.node_name_addresses == ()
