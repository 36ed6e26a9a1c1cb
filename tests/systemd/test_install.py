"""`fake-kubelet install` and `uninstall` on a machine that is no node yet."""

import pytest

from tests.cluster.command import CommandFailed
from tests.cluster.node_view import NodeView
from tests.systemd.member import COMMAND, UNIT

UNIT_FILE = "/etc/systemd/system/fake-kubelet.service"
CONFIG = "/etc/fake-kubelet/config.yaml"
FLAGS = "/etc/fake-kubelet/install-flags.env"


@pytest.fixture
def machine(fresh):
    """A machine on which nothing is installed."""
    fresh.run(COMMAND, "uninstall", "--purge")
    return fresh


def test_a_dry_run_prints_everything_and_does_nothing(machine):
    told = machine.run("setpriv", "--reuid=nobody", COMMAND, "install", "--dry-run", "--node-labels=rack=r1")
    for word in (f"would write {UNIT_FILE}", "ExecStart=/opt/fake-kubelet/bin/fake-kubelet", "--node-labels=rack=r1"):
        assert word in told
    assert "would run systemctl enable" in told
    assert not machine.succeeds("ls", UNIT_FILE)


def test_only_root_installs(machine):
    with pytest.raises(CommandFailed, match="only root can do this"):
        machine.run("setpriv", "--reuid=nobody", COMMAND, "install")


def test_without_credentials_it_is_installed_and_says_what_is_missing(machine):
    assert "there are no credentials. Join with --join HOST:PORT" in machine.run(COMMAND, "install")
    assert machine.run("systemctl", "show", "--value", "--property=LoadState,ActiveState", UNIT).split() == [
        "loaded",
        "inactive",
    ]
    assert machine.run("systemd-analyze", "verify", UNIT_FILE) == ""
    assert machine.run("id", "--name", "--user", UNIT).strip() == UNIT


def test_with_a_kubeconfig_in_its_place_it_starts(machine, control_plane):
    machine.run(COMMAND, "install")
    machine.write("/root/kubeconfig", control_plane.node_kubeconfig(machine.name).read_text())
    machine.run("sh", "-c", f"runuser -u {UNIT} -- tee /var/lib/fake-kubelet/kubelet.conf </root/kubeconfig >/dev/null")
    machine.run("systemctl", "enable", "--now", UNIT)  # returns when a heartbeat was accepted
    assert control_plane.get("node", machine.name)["status"]["nodeInfo"]["osImage"].startswith("Debian")
    machine.run("systemctl", "stop", UNIT)  # or it would register itself again
    NodeView(control_plane, machine.name).delete_node()


def test_a_second_time_nothing_is_written(machine):
    machine.run(COMMAND, "install")
    assert "wrote" not in machine.run(COMMAND, "install")


def test_settings_that_were_changed_are_kept_and_a_unit_is_brought_up_to_date(machine):
    machine.run(COMMAND, "install")
    machine.run("sh", "-c", f"echo maxPods: 7 >> {CONFIG}; echo '# mine' >> {UNIT_FILE}")
    told = machine.run(COMMAND, "install")
    assert f"kept {CONFIG}, which was changed" in told
    assert f"wrote {UNIT_FILE}; what was there is {UNIT_FILE}.old" in told
    assert machine.run("cat", CONFIG).endswith("maxPods: 7\n")
    assert machine.run("tail", "-1", f"{UNIT_FILE}.old") == "# mine\n"
    machine.run("rm", f"{UNIT_FILE}.old")


def test_an_uninstall_leaves_what_is_the_users_unless_told_otherwise(machine):
    machine.run(COMMAND, "install", "--node-labels=rack=r1")
    machine.run("sh", "-c", f"echo maxPods: 7 >> {CONFIG}")
    told = machine.run(COMMAND, "uninstall")
    assert f"kept {CONFIG}, which was changed" in told
    assert not machine.succeeds("ls", UNIT_FILE)
    assert machine.succeeds("ls", CONFIG, FLAGS)
    assert "removed" not in machine.run(COMMAND, "uninstall")
    machine.run(COMMAND, "uninstall", "--purge")
    for path in (CONFIG, FLAGS, "/etc/default/fake-kubelet", "/var/lib/fake-kubelet"):
        assert not machine.succeeds("ls", path), path
