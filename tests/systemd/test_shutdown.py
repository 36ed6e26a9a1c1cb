"""The machine goes down, by order or by accident, and the cluster knows."""

import time

from tests.cluster.waiting import eventually
from tests.systemd.member import UNIT


def locks(member):
    return member.machine.run("systemd-inhibit", "--list", "--no-pager", "--no-legend")


def test_a_shutdown_waits_for_us_as_long_as_the_settings_say(member):
    lock = eventually(lambda: next((line for line in locks(member).splitlines() if UNIT in line), None))
    assert lock.split()[0] == "kubelet"
    assert "Kubelet needs time to handle node shutdown" in lock
    assert lock.split()[-1] == "delay"
    manager = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    assert member.machine.run("busctl", "get-property", *manager, "InhibitDelayMaxUSec").split() == ["t", "30000000"]


def test_a_shutdown_that_is_called_off_leaves_a_ready_node_and_a_lock(member):
    machine = member.machine
    eventually(lambda: UNIT in locks(member))
    slow = ("systemd-inhibit", "--what=shutdown", "--mode=delay", "sleep", "infinity")
    machine.run("systemd-run", "--quiet", "--collect", "--unit=slow", *slow)
    eventually(lambda: "sleep infinity" in locks(member))
    try:
        machine.run("systemctl", "poweroff", "--no-wall")
        # logind finds out at the last moment: when the lock is gone, or its patience of 30 s is at an end.
        machine.run("systemctl", "mask", "--runtime", "--quiet", "poweroff.target")
        eventually(member.is_shutting_down)
        machine.run("systemctl", "stop", "slow")
        eventually(member.is_ready)
    finally:
        machine.run("systemctl", "unmask", "--runtime", "--quiet", "poweroff.target")
    eventually(lambda: UNIT in locks(member))
    eventually(lambda: "Shutdown manager detected shutdown cancellation" in member.event_messages("Shutdown"))


def test_without_polkit_there_is_no_lock_which_is_said_and_lived_with(member):
    phrase = "Unable to hold a shutdown of the machine back"
    said = member.messages().count(phrase)
    member.machine.run("systemctl", "mask", "--runtime", "--now", "--quiet", "polkit.service")
    try:
        member.systemctl("restart")
        eventually(lambda: member.messages().count(phrase) > said)
        member.wait_until_ready()
        assert UNIT not in locks(member)
    finally:
        member.machine.run("systemctl", "unmask", "--runtime", "--quiet", "polkit.service")
    member.systemctl("restart")


def test_at_poweroff_the_cluster_knows_before_the_machine_goes(member, figure):
    uid = member.node()["metadata"]["uid"]
    eventually(lambda: UNIT in locks(member))
    began = time.monotonic()
    member.machine.run("systemctl", "poweroff", "--no-wall")
    eventually(member.is_shutting_down, every=0.02)
    figure("poweroff to NotReady", f"{time.monotonic() - began:.1f} s")
    member.machine.wait_until_off()
    figure("poweroff to off", f"{time.monotonic() - began:.1f} s")
    assert member.has_gone()
    assert "Shutdown manager detected shutdown event" in member.event_messages("Shutdown")
    # In the order of the journal: the cluster knew before the daemon ended.
    journal = member.journal()
    own = [entry for entry in journal if all(entry[key] == journal[-1][key] for key in ("_BOOT_ID", "_PID"))]
    told = [entry["MESSAGE"].partition("] ")[2].partition('" ')[0].strip('"') for entry in own]
    assert told[-1] == "Stopped kubelet"
    assert "The API server shows that the node is shutting down" in told[:-1]
    member.machine.boot()
    member.wait_until_ready()
    assert member.node()["metadata"]["uid"] == uid
    boot_id = member.machine.run("cat", "/proc/sys/kernel/random/boot_id").strip()
    rebooted = f"Node {member.machine.name} has been rebooted, boot id: {boot_id}"
    eventually(lambda: rebooted in member.event_messages("Rebooted"))


def test_after_a_power_cut_it_is_the_same_node_again(member):
    uid = member.node()["metadata"]["uid"]
    member.machine.cut_power()
    member.machine.boot()
    member.wait_until_ready()
    assert member.node()["metadata"]["uid"] == uid
    boot_id = member.machine.run("cat", "/proc/sys/kernel/random/boot_id").strip()
    eventually(lambda: any(boot_id in message for message in member.event_messages("Rebooted")))
