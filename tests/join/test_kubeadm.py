"""A machine that kubeadm has joined to a cluster, with fake-kubelet in kubelet's place."""

import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.cluster.command import run
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.process import Process

# kubeadm's own places; the test has others mounted there
ETC, VAR = Path("/etc/kubernetes"), Path("/var/lib/kubelet")
# kubernetes/release: cmd/krel/templates/latest/kubeadm/10-kubeadm.conf
UNIT = (
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf "
    "--config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS"
)


@pytest.fixture
def places(root, machine):
    """Folders of the machine's own, in whose stead kubeadm writes."""
    for path in (ETC, VAR):
        path.mkdir(parents=True, exist_ok=True)  # to mount over; they stay, as another run may be about to mount there
    stand_ins = {path: machine.folder / path.name for path in (ETC, VAR)}
    for stand_in in stand_ins.values():
        stand_in.mkdir()
    return stand_ins


def join_configuration(machine):
    token = {
        "token": BOOTSTRAP_TOKEN,
        "apiServerEndpoint": machine.plane.endpoint,
        "caCertHashes": [machine.plane.pin],
    }
    document = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {"bootstrapToken": token, "tlsBootstrapToken": BOOTSTRAP_TOKEN},
        "nodeRegistration": {"name": machine.name, "criSocket": "unix:///none.sock"},
    }
    path = machine.folder / "join.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def script(machine, places):
    kubeadm = [str(machine.plane.bin / "kubeadm"), "join", "phase"]
    config = ["--config", str(join_configuration(machine))]
    mounts = [["mount", "--bind", str(stand_in), str(path)] for path, stand_in in places.items()]
    daemon = shlex.join([sys.executable, "-m", "agent"])
    return " && ".join(
        [
            *(shlex.join(words) for words in mounts),
            shlex.join([*kubeadm, "kubelet-start", *config]),
            ". /var/lib/kubelet/kubeadm-flags.env",
            f"exec {daemon} {UNIT} --healthz-port=0 {shlex.join(machine.apart[:2])}",
        ]
    )


def test_after_kubeadm_join_it_is_a_ready_node_with_kubelets_own_command_line(machine, places):
    admin = str(machine.plane.directory / "super-admin.conf")
    config = str(machine.plane.directory / "kubeadm.yaml")
    words = ("init", "phase", "upload-config", "kubelet")
    run([str(machine.plane.bin / "kubeadm"), *words, "--config", config, "--kubeconfig", admin])
    argv = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script(machine, places)]
    joined = Process("kubeadm join", argv, log=machine.folder / "fake-kubelet.log")
    joined.start()
    machine.processes.append(joined)
    machine.wait_until_ready()
    assert (places[ETC] / "kubelet.conf").exists()
    assert (places[VAR] / "pki" / "kubelet-client-current.pem").is_symlink()
    assert machine.refusals() == []
