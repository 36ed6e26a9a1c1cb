"""Who we are, who the server is and what we may do changes under our feet."""

import base64
import os
import signal
import time

import pytest
import yaml

from tests.cluster.command import run
from tests.cluster.proxy import through
from tests.cluster.waiting import eventually

_ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: edge}
rules:
- {apiGroups: [""], resources: [nodes, nodes/status], verbs: ["*"]}
- {apiGroups: [""], resources: [events], verbs: ["*"]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}
- {apiGroups: [storage.k8s.io], resources: [csinodes], verbs: ["*"]}
"""


def kubeadm(plane, *words):
    return run([str(plane.bin / "kubeadm"), *words])


def certificate(plane, name, *, valid):
    """A client certificate and its key for a node, as PEM."""
    config = ("--config", str(plane.directory / "kubeadm.yaml"))
    who = ("--client-name", f"system:node:{name}", "--org", "system:nodes")
    made = yaml.safe_load(kubeadm(plane, "kubeconfig", "user", *config, *who, "--validity-period", valid))
    user = made["users"][0]["user"]
    return [base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")]


@pytest.fixture
def granted(plane):
    """A role for whoever is bound to it."""
    plane.kubectl("apply", "-f", "-", input=_ROLE)
    bind = ("create", "clusterrolebinding", "edge", "--clusterrole=edge", "--serviceaccount=default:edge")
    plane.kubectl("create", "serviceaccount", "edge")
    plane.kubectl(*bind)
    yield bind
    plane.kubectl("delete", "serviceaccount", "edge")
    plane.kubectl("delete", "clusterrolebinding", "edge", "--ignore-not-found")


@pytest.fixture
def token_file(plane, granted, tmp_path):
    """A good token with a line's end, as an editor leaves it."""
    path = tmp_path / "token"
    path.write_text(plane.kubectl("create", "token", "edge").strip() + "\n")
    return path


def test_the_server_has_a_certificate_of_another_authority(join, proxy, plane, tmp_path):
    other = ("--cert-dir", str(tmp_path / "other"))
    kubeadm(plane, "init", "phase", "certs", "ca", *other)
    names = ("--apiserver-cert-extra-sans", "127.0.0.1", "--apiserver-advertise-address", "192.0.2.1")
    kubeadm(plane, "init", "phase", "certs", "apiserver", *other, *names)
    member = join()
    impostor = proxy.impostor(tmp_path / "other" / "apiserver.crt", tmp_path / "other" / "apiserver.key")
    proxy.set(kill=True, target_port=impostor)
    eventually(lambda: "certificate of the API server not trusted" in member.process.log_text(), within=10)
    time.sleep(3)
    proxy.set(kill=True, target_port=plane.layout.apiserver)
    member.wait_until_recovered()


def test_a_client_certificate_expires_and_is_renewed_on_disk(join, proxy, plane, node_name, tmp_path):
    files = tmp_path / "client.crt", tmp_path / "client.key"

    def write(valid):
        for path, content in zip(files, certificate(plane, node_name, valid=valid), strict=True):
            path.write_bytes(content)

    write("8s")
    user = {"client-certificate": str(files[0]), "client-key": "client.key"}
    member = join(kubeconfig=through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-file", **user))
    eventually(lambda: "Unauthorized" in member.process.log_text(), within=20)
    time.sleep(2)
    write("1h")
    member.wait_until_recovered()
    assert '"Credentials changed, connecting anew"' in member.process.log_text()


def test_a_certificate_that_is_renewed_in_time_costs_no_heartbeat(join, proxy, plane, node_name, tmp_path):
    files = tmp_path / "client.crt", tmp_path / "client.key"
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    for path, content in zip(files, certificate(plane, node_name, valid="1h"), strict=True):
        path.write_bytes(content)
    member = join(kubeconfig=through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-file", **user))
    for path, content in zip(files, certificate(plane, node_name, valid="1h"), strict=True):
        path.write_bytes(content)
    eventually(lambda: '"Credentials changed, connecting anew"' in member.process.log_text(), within=10)
    time.sleep(2)
    assert "Unauthorized" not in member.process.log_text()
    member.wait_until_recovered()  # before the lease is over


def test_a_token_is_revoked_and_another_one_put_in_its_place(join, proxy, plane, node_name, tmp_path, token_file):
    user = {"tokenFile": "token", "token": "loses-to-the-file"}
    member = join(kubeconfig=through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-token", **user))
    good = token_file.read_text()
    token_file.write_text("revoked\n")
    os.kill(member.process.pid, signal.SIGHUP)  # a person who knows of it need not wait
    eventually(lambda: "Unauthorized" in member.process.log_text(), within=10)
    time.sleep(2)
    token_file.write_text(good)
    member.wait_until_recovered()


def test_permissions_are_taken_away_and_given_back(join, proxy, plane, node_name, tmp_path, token_file, granted):
    user = {"tokenFile": str(token_file)}
    member = join(kubeconfig=through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-token", **user))
    plane.kubectl("delete", "clusterrolebinding", "edge")
    told = '"Failed to ensure lease exists, will retry" err="leases.coordination.k8s.io'
    eventually(lambda: told in member.process.log_text(), within=15)
    time.sleep(3)
    assert "is forbidden" in member.process.log_text()
    plane.kubectl(*granted)
    member.wait_until_recovered()
