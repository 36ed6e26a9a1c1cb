"""What only a machine with a kernel, memory and a disk of its own can show."""

import shutil
import time
from pathlib import Path

import pytest

from tests.cluster.lacking import lacking
from tests.cluster.waiting import eventually
from tests.systemd.member import UNIT, Member
from tests.systemd.vm import VirtualMachine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CONFIG = "/etc/fake-kubelet/config.yaml"
EVICTION = """
evictionHard: {memory.available: 300Mi, nodefs.available: 10%, pid.available: 90%}
"""
HOG = """
import time
def available_kib():
    return int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable")).split()[1])
blocks = []
while available_kib() > 120 * 1024:
    blocks.append(bytearray(b"x") * (4 << 20))
time.sleep(600)
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shared_vm(layers, control_plane, tmp_path_factory):
    """A virtual machine that was made a node."""
    if shutil.which("qemu-system-x86_64") is None:
        lacking("qemu is not installed; see .ci/packages")
    place = tmp_path_factory.mktemp("vm")
    with VirtualMachine("systemd-vm", layers, place, api_port=control_plane.layout.apiserver) as machine:
        machine.boot()
        settings = (ROOT / "config" / "service.yaml").read_text() + EVICTION
        machine.run("mkdir", "/etc/fake-kubelet")
        machine.run("sh", "-c", f"echo '{settings}' > {CONFIG}")
        made = Member(machine, control_plane)
        made.install_and_join()
        yield made
    made.delete_node()


@pytest.fixture
def vm(shared_vm):
    """The machine that all tests share: it is on and a node."""
    if not shared_vm.machine.is_on:
        shared_vm.machine.boot()
    shared_vm.wait_until_ready()
    return shared_vm


def test_a_fresh_machine_becomes_a_node_by_one_line(vm, figure):
    assert vm.machine.run("stat", "--file-system", "--format=%T", "/sys/fs/cgroup").strip() == "cgroup2fs"
    total_kib = int(vm.machine.run("grep", "MemTotal", "/proc/meminfo").split()[1])
    assert vm.node()["status"]["capacity"]["memory"] == f"{total_kib}Ki"
    figure(
        "RSS in a VM", f"{int(vm.machine.run('grep', 'VmRSS', f'/proc/{vm.pid()}/status').split()[1]) / 1024:.1f} MiB"
    )


@pytest.mark.parametrize(
    ("condition", "command", "undo"),
    [
        (
            "PIDPressure",
            ["sysctl", "--write", "kernel.pid_max=450"],  # enough to go on with
            ["sysctl", "--write", "kernel.pid_max=32768"],
        ),
        (
            "DiskPressure",
            ["sh", "-c", "fallocate -l $(($(df --output=avail -B1 / | tail -1) - 40000000)) /fill"],
            ["rm", "--force", "/fill"],
        ),
        (
            "MemoryPressure",
            ["systemd-run", "--quiet", "--unit=hog", "python3", "-c", HOG],
            ["systemctl", "stop", "hog"],
        ),
    ],
    ids=["pids", "disk", "memory"],
)
def test_what_runs_out_is_told(vm, condition, command, undo):
    assert vm.condition(condition)["status"] == "False"
    try:
        vm.machine.run(*command)
        eventually(lambda: vm.condition(condition)["status"] == "True")
        assert vm.show("ActiveState") == "active"
    finally:
        vm.machine.run(*undo)


def test_a_cpu_that_is_taken_offline_is_told_without_a_restart(vm):
    def switch(state):
        vm.machine.run("sh", "-c", f"echo {state} > /sys/devices/system/cpu/cpu1/online")

    assert vm.node()["status"]["capacity"]["cpu"] == "2"
    switch(0)
    eventually(lambda: vm.node()["status"]["capacity"]["cpu"] == "1")
    switch(1)
    eventually(lambda: vm.node()["status"]["capacity"]["cpu"] == "2")


def test_a_limit_of_the_unit_is_the_capacity_of_the_node_where_that_is_asked_for(vm):
    def memory():
        return vm.node()["status"]["capacity"]["memory"]

    whole = memory()
    with vm.drop_in("MemoryMax=512M", "Environment=KUBELET_EXTRA_ARGS=--capacity-from=cgroup"):
        vm.systemctl("restart")
        eventually(lambda: memory() == "512Mi", within=240)
    vm.systemctl("restart")
    eventually(lambda: memory() == whole, within=240)


def test_it_says_that_it_goes_and_comes_back_as_the_same_node(vm, figure):
    uid = vm.node()["metadata"]["uid"]
    eventually(lambda: UNIT in vm.machine.run("systemd-inhibit", "--list", "--no-pager", "--no-legend"))
    began = time.monotonic()
    vm.machine.run("systemctl", "poweroff", "--no-wall")
    eventually(vm.is_shutting_down, every=0.05)
    figure("poweroff of a VM to NotReady", f"{time.monotonic() - began:.1f} s")
    vm.machine.wait_until_off()
    assert vm.has_gone()
    vm.machine.boot()
    vm.wait_until_ready()
    assert vm.node()["metadata"]["uid"] == uid
    boot_id = vm.machine.run("cat", "/proc/sys/kernel/random/boot_id").strip()
    eventually(lambda: any(boot_id in message for message in vm.event_messages("Rebooted")))
    assert "Traceback" not in vm.machine.run("journalctl", "--no-pager", f"--unit={UNIT}")
