"""Who we are, who the server is and what we may do changes under our feet."""

import base64
import os
import signal

import pytest
import yaml

from tests.cluster.command import run
from tests.cluster.proxy import through

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
_RULES = [
    {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["*"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
    {"apiGroups": ["storage.k8s.io"], "resources": ["csinodes"], "verbs": ["*"]},
]
_CHANGED = '"Credentials changed, connecting anew"'
_UNHURRIED = (
    "--node-lease-duration-seconds=8",
    "--node-status-update-frequency=8s",
)  # no request fails by its deadline


def kubeadm(plane, *words):
    return run([str(plane.bin / "kubeadm"), *words])


class ClientCertificate:
    """A client certificate and its key for a node, as two files."""

    def __init__(self, plane, name, directory):
        self._plane, self._name = plane, name
        self._files = directory / "client.crt", directory / "client.key"

    def write(self, *, valid):
        """Put a new one in the place of the old one."""
        config = ("--config", str(self._plane.directory / "kubeadm.yaml"))
        who = ("--client-name", f"system:node:{self._name}", "--org", "system:nodes")
        made = yaml.safe_load(kubeadm(self._plane, "kubeconfig", "user", *config, *who, "--validity-period", valid))
        user = made["users"][0]["user"]
        for path, part in zip(self._files, ("certificate", "key"), strict=True):
            path.write_bytes(base64.b64decode(user[f"client-{part}-data"]))


@pytest.fixture
def client_certificate(plane, node_name, tmp_path):
    certificate = ClientCertificate(plane, node_name, tmp_path)
    certificate.write(valid="1h")
    return certificate


@pytest.fixture
def by_certificate(client_certificate, proxy, plane, node_name, tmp_path):
    """A kubeconfig that names the files of the certificate, one of them from where it stands itself."""
    user = {"client-certificate": str(tmp_path / "client.crt"), "client-key": "client.key"}
    return through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-certificate", **user)


@pytest.fixture
def account(plane, node_name):
    """A service account with a role that it is not bound to yet."""
    plane.api.create(_ACCOUNTS, {"metadata": {"name": node_name}})
    role = {"metadata": {"name": node_name}, "rules": _RULES}
    plane.api.create(f"{_RBAC}/clusterroles", role)
    yield node_name
    plane.api.delete(f"{_ACCOUNTS}/{node_name}")
    plane.api.delete(f"{_RBAC}/clusterroles/{node_name}")


@pytest.fixture
def binding(plane, account):
    """What binds the two: the path of the list, and the object."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    made = f"{_RBAC}/clusterrolebindings", {"metadata": {"name": account}, "subjects": [subject], "roleRef": role}
    plane.api.create(*made)
    yield made
    plane.api.delete(f"{_RBAC}/clusterrolebindings/{account}")


@pytest.fixture
def token_file(plane, account, binding, tmp_path):
    """A good token with a line's end, as an editor leaves it."""
    path = tmp_path / "token"
    answer = plane.api.create(f"{_ACCOUNTS}/{account}/token", {"spec": {}})
    path.write_text(answer["status"]["token"] + "\n")
    return path


@pytest.fixture
def by_token(token_file, proxy, plane, node_name, tmp_path):
    """A kubeconfig that names the file of the token."""
    user = {"tokenFile": token_file.name, "token": "loses-to-the-file"}
    return through(proxy.port, plane.node_kubeconfig(node_name), tmp_path / "by-token", **user)


def test_the_server_has_a_certificate_of_another_authority(join, proxy, plane, tmp_path):
    other = ("--cert-dir", str(tmp_path / "other"))
    kubeadm(plane, "init", "phase", "certs", "ca", *other)
    names = ("--apiserver-cert-extra-sans", "127.0.0.1", "--apiserver-advertise-address", "192.0.2.1")
    kubeadm(plane, "init", "phase", "certs", "apiserver", *other, *names)
    member = join()
    impostor = proxy.impostor(tmp_path / "other" / "apiserver.crt", tmp_path / "other" / "apiserver.key")
    proxy.set(kill=True, target_port=impostor)
    member.wait_until_logged('"Failed to ensure lease exists, will retry"', "certificate signed by unknown authority")
    proxy.set(kill=True, target_port=plane.layout.apiserver)
    member.wait_until_recovered()


def test_a_client_certificate_expires_and_is_renewed_on_disk(join, client_certificate, by_certificate):
    member = join(kubeconfig=by_certificate)
    client_certificate.write(valid="3s")  # not from the beginning: a busy machine might take longer to join
    os.kill(member.process.pid, signal.SIGHUP)
    member.wait_until_logged(_CHANGED)
    member.wait_until_logged('"Failed to ensure lease exists, will retry"', "Unauthorized")
    client_certificate.write(valid="1h")
    member.wait_until_recovered()
    member.wait_until_logged(_CHANGED, times=2)


def test_a_certificate_that_is_renewed_in_time_costs_no_heartbeat(join, client_certificate, by_certificate):
    member = join(*_UNHURRIED, kubeconfig=by_certificate)
    client_certificate.write(valid="1h")
    member.wait_until_logged(_CHANGED)
    member.wait_until_renewed(times=2)
    member.wait_until_recovered()
    assert "Unauthorized" not in member.news()
    assert "Failed to update lease" not in member.news()


def test_a_token_is_revoked_and_another_one_put_in_its_place(join, token_file, by_token):
    member = join(kubeconfig=by_token)
    good = token_file.read_text()
    token_file.write_text("revoked\n")
    os.kill(member.process.pid, signal.SIGHUP)  # a person who knows of it need not wait
    member.wait_until_logged('"Failed to ensure lease exists, will retry"', "Unauthorized")
    token_file.write_text(good)
    member.wait_until_recovered()


def test_permissions_are_taken_away_and_given_back(join, plane, binding, by_token):
    member = join(kubeconfig=by_token)
    bindings, edge = binding
    plane.api.delete(f"{bindings}/{member.name}")
    told = '"Failed to ensure lease exists, will retry" err="leases.coordination.k8s.io'
    member.wait_until_logged(told, "is forbidden", times=2)
    plane.api.create(bindings, edge)
    member.wait_until_recovered()
