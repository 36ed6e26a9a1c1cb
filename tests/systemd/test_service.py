"""The service as systemd runs it: started, watched over, reloaded, stopped, started again."""

import re
import time

import yaml

from tests.cluster.waiting import eventually


def test_systemctl_status_tells_of_the_node_and_its_lease(member, figure):
    assert "Active: active (running)" in member.systemctl("status", "--no-pager", "--full")
    pattern = rf'Status: "{member.machine.name}: Ready, lease renewed (\d+m)?\d+m?s ago"'
    eventually(lambda: re.search(pattern, member.systemctl("status", "--no-pager", "--full")))
    resident = member.machine.run("grep", "VmRSS", f"/proc/{member.pid()}/status").split()[1]
    figure("RSS under systemd", f"{int(resident) / 1024:.1f} MiB")


def test_it_runs_as_a_user_of_its_own_and_can_do_nothing_but_read(member, figure):
    status = member.machine.run("cat", f"/proc/{member.pid()}/status")
    assert re.search(r"^Uid:\s+[1-9]", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    told = member.machine.run("systemd-analyze", "security", "--no-pager", "fake-kubelet")
    exposure = re.search(r"exposure level for fake-kubelet.service: ([\d.]+)", told)
    assert float(exposure[1]) <= 2.0
    figure("systemd-analyze exposure", exposure[1])


def test_its_memory_is_limited_and_no_other_process_is_killed_in_its_place(member):
    assert member.show("MemoryMax") == str(2**30)
    assert member.show("MemorySwapMax") == "0"
    assert member.machine.run("cat", f"/proc/{member.pid()}/oom_score_adj").strip() == "0"


def test_systemd_has_nothing_to_say_against_the_unit(member):
    assert member.machine.run("systemd-analyze", "verify", "fake-kubelet.service") == ""


def test_behind_all_that_hardening_the_node_still_tells_the_truth_about_the_machine(member):
    machine = member.machine
    boot_id = machine.run("cat", "/proc/sys/kernel/random/boot_id").strip()
    eventually(lambda: member.node()["status"]["nodeInfo"]["bootID"] == boot_id)  # it may just have been booted
    status = member.node()["status"]
    total_kib = int(machine.run("grep", "MemTotal", "/proc/meminfo").split()[1])
    assert status["capacity"]["memory"] == f"{total_kib}Ki"
    assert status["nodeInfo"]["machineID"] == machine.run("cat", "/etc/machine-id").strip()
    assert {"type": "InternalIP", "address": "192.0.2.10"} in status["addresses"]


def start_without_a_cluster(member, timeout_seconds):
    """The PID of a daemon that says it waits; None if its machine was too slow for that in the time of a start."""
    member.systemctl("reset-failed")  # what an earlier start came to
    member.systemctl("start", "--no-block")
    eventually(lambda: member.show("ActiveState") == "failed" or "waiting" in member.show("StatusText"))
    pid, began = member.pid(), int(member.show("ExecMainStartTimestampMonotonic"))
    if not pid:
        return None
    eventually(lambda: time.monotonic_ns() // 1000 - began > 2 * timeout_seconds * 1_000_000)
    return pid


def test_started_is_who_had_a_heartbeat_accepted_however_long_that_takes(member):
    member.systemctl("stop")  # so that nothing that it says is from before
    member.machine.wire.set(refuse=True, kill=True)
    pid = None
    for timeout_seconds in (2, 4, 8, 16, 32, 64):
        with member.drop_in(f"TimeoutStartSec={timeout_seconds}", "Restart=no"):
            if pid := start_without_a_cluster(member, timeout_seconds):
                assert (member.show("ActiveState"), member.pid()) == ("activating", pid)
                break
    member.machine.wire.set()
    member.wait_until_ready()
    assert member.pid() == pid


def test_a_killed_daemon_is_back_before_the_cluster_misses_it(member):
    before, uid, restarts = member.condition("Ready"), member.node()["metadata"]["uid"], int(member.show("NRestarts"))
    assert member.show("RestartUSec") == "10s"  # a fifth of the time that a cluster waits for a heartbeat
    with member.drop_in("RestartSec=1"):
        member.machine.run("kill", "-KILL", str(member.pid()))
        eventually(lambda: int(member.show("NRestarts")) > restarts)
        member.wait_until_ready()
    assert member.condition("Ready")["lastTransitionTime"] == before["lastTransitionTime"]
    assert member.node()["metadata"]["uid"] == uid


def test_a_daemon_that_stands_still_is_started_again_by_the_watchdog(member, figure):
    with member.drop_in("WatchdogSec=4", "RestartSec=1", "TimeoutAbortSec=1"):
        member.systemctl("restart")
        pid, restarts = member.pid(), int(member.show("NRestarts"))
        member.machine.run("kill", "-STOP", str(pid))
        began = time.monotonic()
        eventually(lambda: int(member.show("NRestarts")) > restarts)
        member.wait_until_ready()
        figure("watchdog recovery", f"{time.monotonic() - began:.1f} s (WatchdogSec=4)")
        eventually(lambda: "Watchdog timeout" in member.machine.run("journalctl", "--no-pager", "-u", "fake-kubelet"))
    member.systemctl("restart")


def test_a_reload_has_log_settings_read_again_in_the_same_process(member):
    path, pid, phrase = "/etc/fake-kubelet/config.yaml", member.pid(), "Flags are deprecated by kubelet"
    said = member.messages().count(phrase)
    config = (member.machine.root / path.lstrip("/")).read_text()
    document = yaml.safe_load(config)
    try:
        member.machine.write(path, yaml.safe_dump(document | {"logging": {"verbosity": 2}}))
        member.systemctl("reload")
        eventually(lambda: member.messages().count(phrase) > said)
    finally:
        member.machine.write(path, config)
    member.systemctl("reload")
    assert (member.pid(), member.show("ActiveState")) == (pid, "active")


def test_a_stop_is_clean_and_as_with_a_kubelet_the_cluster_hears_nothing_of_it(member, figure):
    before, began = member.condition("Ready"), time.monotonic()
    member.systemctl("stop")
    figure("systemctl stop", f"{time.monotonic() - began:.1f} s")
    # Not after TimeoutStopSec, by a signal.
    assert (member.show("Result"), member.show("ExecMainCode"), member.show("ExecMainStatus")) == ("success", "1", "0")
    after = member.condition("Ready")
    assert (after["status"], after["lastTransitionTime"]) == ("True", before["lastTransitionTime"])
    member.systemctl("start")


def test_the_journal_has_priorities_and_no_second_timestamp(member):
    member.machine.wire.set(refuse=True, kill=True)
    try:
        eventually(lambda: any(entry["PRIORITY"] == "3" for entry in member.journal()))
    finally:
        member.machine.wire.set()
    entries = member.journal()
    assert {entry["PRIORITY"] for entry in entries} <= {"3", "4", "6"}
    for entry in entries:
        assert re.match(r'\w+\.py:\d+\] "', entry["MESSAGE"]), entry["MESSAGE"]
