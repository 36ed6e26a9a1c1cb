"""A machine that kubeadm manages, whose kubelet.service is fake-kubelet by one drop-in."""

import re
import shutil

import pytest

from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually
from tests.systemd.kubeadm import kubeadm_join, leave


@pytest.fixture(scope="module")
def joined(fresh, control_plane):
    """A machine after `kubeadm join`."""
    name, kubeadm = f"{fresh.name}-kubeadm", fresh.root / "usr/local/bin/kubeadm"
    shutil.copy(control_plane.bin / "kubeadm", kubeadm)
    kubeadm_join(fresh, control_plane, node_name=name)
    node = NodeView(control_plane, name)
    node.wait_until_ready()
    yield fresh
    leave(fresh)
    node.delete_node()
    kubeadm.unlink()


def is_active(machine):
    return machine.run("systemctl", "is-active", "kubelet", check=False).strip() == "active"


def test_after_kubeadm_join_it_is_a_ready_node(joined):
    eventually(lambda: is_active(joined))
    assert joined.run("systemd-analyze", "verify", "kubelet.service") == ""
    assert "fake-kubelet" in joined.run("systemctl", "show", "--property=ExecStart", "kubelet")
    # As root it sees to logind's patience by itself, as a kubelet does.
    joined.run(
        "sed", "--in-place", "s/^shutdownGracePeriod:.*/shutdownGracePeriod: 21s/", "/var/lib/kubelet/config.yaml"
    )
    joined.run("systemctl", "restart", "kubelet")
    manager = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    eventually(lambda: "21000000" in joined.run("busctl", "get-property", *manager, "InhibitDelayMaxUSec"))
    assert "InhibitDelayMaxSec=21" in joined.run("cat", "/etc/systemd/logind.conf.d/99-kubelet.conf")


def test_though_it_is_root_it_can_write_only_where_a_kubelets_files_are(joined, figure):
    eventually(lambda: is_active(joined))
    pid = joined.run("systemctl", "show", "--value", "--property=MainPID", "kubelet").strip()

    def can_write(folder):
        inside = ("nsenter", "--target", pid, "--mount", "--")
        return joined.succeeds(*inside, "sh", "-ec", f"touch {folder}/.probe; rm {folder}/.probe")

    own = ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/kubelet/pki", "/etc/systemd/logind.conf.d")
    others = ("/etc", "/etc/systemd/system", "/usr/local/bin", "/var/lib", "/var/log", "/root", "/opt/fake-kubelet")
    assert {folder: can_write(folder) for folder in (*own, *others)} == {
        **dict.fromkeys(own, True),
        **dict.fromkeys(others, False),
    }
    said = joined.run("systemd-analyze", "security", "--no-pager", "kubelet")
    exposure = re.search(r"exposure level for kubelet.service: ([\d.]+)", said)
    assert float(exposure[1]) <= 3.0
    figure("systemd-analyze exposure of the kubelet drop-in", exposure[1])
