"""A machine that kubeadm manages, whose kubelet.service is fake-kubelet by one drop-in."""

import re
import shutil

import pytest

from tests.cluster.command import run
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.waiting import eventually
from tests.join.test_join import pin

DROP_INS = "/etc/systemd/system/kubelet.service.d"
SHIPPED = "/opt/fake-kubelet/share/fake-kubelet/systemd"
# kubernetes/release: cmd/krel/templates/latest/kubelet/kubelet.service and …/kubeadm/10-kubeadm.conf
KUBELET_UNIT = """\
[Unit]
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=/usr/bin/kubelet
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
"""
KUBEADM_DROP_IN = """\
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


@pytest.fixture
def joined(fresh, control_plane):
    """A machine after `kubeadm join`."""
    shutil.copy(control_plane.bin / "kubeadm", fresh.root / "usr/local/bin/kubeadm")
    kubeadm_join(fresh, control_plane)
    yield fresh
    fresh.run("systemctl", "stop", "kubelet")
    control_plane.kubectl("delete", "node", fresh.name, "--ignore-not-found", "--wait=false")


def kubeadm_join(machine, control_plane):
    """Have a machine, on which kubeadm is, join as kubeadm's documentation says, with our drop-in beside its own."""
    kubeadm = str(control_plane.bin / "kubeadm")
    access = ("--config", str(control_plane.directory / "kubeadm.yaml"))
    admin = ("--kubeconfig", str(control_plane.directory / "super-admin.conf"))
    run([kubeadm, "init", "phase", "upload-config", "kubelet", *access, *admin])
    # The cluster of the tests has its authority in a folder of its own; on the machine it is where kubeadm puts it.
    words = ("configmap", "kubelet-config", "--namespace=kube-system")
    uploaded = control_plane.kubectl("get", *words, "--output=json")
    told = uploaded.replace(str(control_plane.ca_file), "/etc/kubernetes/pki/ca.crt")
    control_plane.kubectl("replace", "-f", "-", input=told)
    machine.write("/usr/lib/systemd/system/kubelet.service", KUBELET_UNIT)
    machine.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", KUBEADM_DROP_IN)
    machine.run("mkdir", "--parents", DROP_INS)
    machine.run("cp", f"{SHIPPED}/kubelet.service.d/20-fake-kubelet.conf", DROP_INS)
    machine.run("ln", "--symbolic", "--force", "/opt/fake-kubelet/bin/fake-kubelet", "/usr/local/bin/fake-kubelet")
    machine.run("systemctl", "daemon-reload")
    machine.run(
        *("kubeadm", "join", control_plane.url.removeprefix("https://"), "--token", BOOTSTRAP_TOKEN),
        *("--discovery-token-ca-cert-hash", pin(control_plane), "--ignore-preflight-errors=all"),
        *("--cri-socket", "unix:///none.sock"),
    )


def test_after_kubeadm_join_it_is_a_ready_node(joined, control_plane):
    def is_ready():
        conditions = control_plane.get("node", joined.name)["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    eventually(is_ready, within=30)
    assert joined.run("systemctl", "is-active", "kubelet").strip() == "active"
    assert joined.run("systemd-analyze", "verify", "kubelet.service") == ""
    assert "fake-kubelet" in joined.run("systemctl", "show", "--property=ExecStart", "kubelet")
    # As root it sees to logind's patience by itself, as a kubelet does.
    joined.run(
        "sed", "--in-place", "s/^shutdownGracePeriod:.*/shutdownGracePeriod: 21s/", "/var/lib/kubelet/config.yaml"
    )
    joined.run("systemctl", "restart", "kubelet")
    manager = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
    eventually(lambda: "21000000" in joined.run("busctl", "get-property", *manager, "InhibitDelayMaxUSec"), within=15)
    assert "InhibitDelayMaxSec=21" in joined.run("cat", "/etc/systemd/logind.conf.d/99-kubelet.conf")


def test_though_it_is_root_it_can_write_only_where_a_kubelets_files_are(joined, figure):
    eventually(lambda: joined.run("systemctl", "is-active", "kubelet", check=False).strip() == "active", within=30)
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
