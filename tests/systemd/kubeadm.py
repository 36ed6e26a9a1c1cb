"""A machine that kubeadm joins to the cluster, with fake-kubelet in kubelet's place."""

from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.systemd.machine import Machine

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


def kubeadm_join(machine: Machine, control_plane: ControlPlane, *, node_name: str) -> None:
    """Have a machine, on which kubeadm is, join as kubeadm's documentation says, with our drop-in beside its own."""
    kubeadm = str(control_plane.bin / "kubeadm")
    access = ("--config", str(control_plane.directory / "kubeadm.yaml"))
    admin = ("--kubeconfig", str(control_plane.directory / "super-admin.conf"))
    run([kubeadm, "init", "phase", "upload-config", "kubelet", *access, *admin])
    # The cluster of the tests has its authority in a folder of its own; on the machine it is where kubeadm puts it.
    path = "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
    uploaded = control_plane.api.get(path)["data"]["kubelet"]
    told = uploaded.replace(str(control_plane.ca_file), "/etc/kubernetes/pki/ca.crt")
    control_plane.api.patch(path, {"data": {"kubelet": told}})
    machine.write("/usr/lib/systemd/system/kubelet.service", KUBELET_UNIT)
    machine.write("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", KUBEADM_DROP_IN)
    machine.run("mkdir", "--parents", DROP_INS)
    machine.run("cp", f"{SHIPPED}/kubelet.service.d/20-fake-kubelet.conf", DROP_INS)
    machine.run("ln", "--symbolic", "--force", "/opt/fake-kubelet/bin/fake-kubelet", "/usr/local/bin/fake-kubelet")
    machine.run("systemctl", "daemon-reload")
    machine.run(
        *("kubeadm", "join", control_plane.endpoint, "--token", BOOTSTRAP_TOKEN),
        *("--discovery-token-ca-cert-hash", control_plane.pin, "--ignore-preflight-errors=all"),
        *("--cri-socket", "unix:///none.sock", "--node-name", node_name),
    )


def leave(machine: Machine) -> None:
    """Have the machine as it was before."""
    machine.run("systemctl", "disable", "--now", "--quiet", "kubelet")
    own = ("/usr/lib/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service.d", DROP_INS)
    machine.run("rm", "-rf", *own, "/usr/local/bin/fake-kubelet", "/etc/kubernetes", "/var/lib/kubelet")
    machine.run("systemctl", "daemon-reload")
