"""The service as systemd runs it: started, watched over, reloaded, stopped, started again."""

import re
import time

import yaml

from tests.cluster.waiting import eventually


def test_systemctl_status_tells_of_the_node_and_its_lease(member, figure):
    told = member.machine.run("systemctl", "status", "--no-pager", "--full", "fake-kubelet")
    assert "Active: active (running)" in told
    pattern = rf'Status: "{member.machine.name}: Ready, lease renewed \d+m?s ago"'
    eventually(lambda: re.search(pattern, member.machine.run("systemctl", "status", "--no-pager", "fake-kubelet")))
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
    machine, status = member.machine, member.node()["status"]
    total_kib = int(machine.run("grep", "MemTotal", "/proc/meminfo").split()[1])
    assert status["capacity"]["memory"] == f"{total_kib}Ki"
    assert status["nodeInfo"]["machineID"] == machine.run("cat", "/etc/machine-id").strip()
    assert status["nodeInfo"]["bootID"] == machine.run("cat", "/proc/sys/kernel/random/boot_id").strip()
    assert {"type": "InternalIP", "address": "192.0.2.10"} in status["addresses"]


def test_started_is_who_had_a_heartbeat_accepted_however_long_that_takes(member):
    member.machine.wire.set(refuse=True, kill=True)
    try:
        with member.drop_in("TimeoutStartSec=2"):
            member.systemctl("restart", "--no-block")
            eventually(lambda: "waiting" in member.show("StatusText"))
            pid = member.pid()
            time.sleep(3)  # longer than the timeout: the daemon has asked for more
            assert (member.show("ActiveState"), member.pid()) == ("activating", pid)
    finally:
        member.machine.wire.set()
    member.wait_until_ready()
    assert member.pid() == pid


def test_a_killed_daemon_is_back_before_the_cluster_misses_it(member):
    before, uid, restarts = member.condition("Ready"), member.node()["metadata"]["uid"], int(member.show("NRestarts"))
    member.machine.run("kill", "-KILL", str(member.pid()))
    eventually(lambda: int(member.show("NRestarts")) > restarts, within=20)
    member.wait_until_ready()
    assert member.condition("Ready")["lastTransitionTime"] == before["lastTransitionTime"]
    assert member.node()["metadata"]["uid"] == uid


def test_a_daemon_that_stands_still_is_started_again_by_the_watchdog(member, figure):
    with member.drop_in("WatchdogSec=4", "RestartSec=1"):
        member.systemctl("restart")
        pid, restarts = member.pid(), int(member.show("NRestarts"))
        member.machine.run("kill", "-STOP", str(pid))
        began = time.monotonic()
        eventually(lambda: int(member.show("NRestarts")) > restarts, within=30)
        member.wait_until_ready()
        figure("watchdog recovery", f"{time.monotonic() - began:.1f} s (WatchdogSec=4)")
        assert "Watchdog timeout" in member.machine.run("journalctl", "--no-pager", "-u", "fake-kubelet")
    member.systemctl("restart")
    member.wait_until_ready()


def test_a_reload_has_log_settings_read_again_in_the_same_process(member):
    path, pid = "/etc/fake-kubelet/config.yaml", member.pid()
    config = (member.machine.root / path.lstrip("/")).read_text()
    document = yaml.safe_load(config)
    try:
        member.machine.write(path, yaml.safe_dump(document | {"logging": {"verbosity": 2}}))
        member.systemctl("reload")
        eventually(lambda: "Flags are deprecated by kubelet" in member.messages())
    finally:
        member.machine.write(path, config)
    member.systemctl("reload")
    assert (member.pid(), member.show("ActiveState")) == (pid, "active")


def test_a_stop_is_quick_and_as_with_a_kubelet_the_cluster_hears_nothing_of_it(member):
    began = time.monotonic()
    member.systemctl("stop")
    took = time.monotonic() - began
    assert member.show("Result") == "success"
    assert took < 5
    assert member.condition("Ready")["status"] == "True"
    member.systemctl("start")
    member.wait_until_ready()


def test_the_journal_has_priorities_and_no_second_timestamp(member):
    member.machine.wire.set(refuse=True, kill=True)
    try:
        eventually(lambda: any(entry["PRIORITY"] == "3" for entry in member.journal()), within=30)
    finally:
        member.machine.wire.set()
    entries = member.journal()
    assert {entry["PRIORITY"] for entry in entries} <= {"3", "4", "6"}
    for entry in entries:
        assert re.match(r'\w+\.py:\d+\] "', entry["MESSAGE"]), entry["MESSAGE"]
    member.wait_until_ready()
