"""A node that came into the cluster with nothing but a bootstrap token: its files, its requests, its process.

In a file of its own: other machines would be in the audit log beside it.
"""

import secrets
import stat
from pathlib import Path

import pytest
import yaml

from agent.core.x509 import read_certificates
from tests.cluster.machine import Machine
from tests.cluster.waiting import eventually


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(scope="module", params=["false", "true"], ids=["at once", "in the background"])
def member(request, control_plane, tmp_path_factory):
    """A machine that had nothing but a token, and is a node now."""
    name = f"member-{request.param}-{secrets.token_hex(3)}"
    machine = Machine(control_plane, name, tmp_path_factory.mktemp("member"))
    machine.give_token()
    machine.start(f"--rotate-certificates={request.param}")
    machine.wait_until_ready()
    yield machine
    machine.stop()


def test_with_nothing_but_a_token_the_node_gets_ready_as_itself_and_is_never_refused(member):
    eventually(lambda: member.users() == {"system:bootstrap:abcdef", f"system:node:{member.name}"})
    assert member.refusals() == []


def test_the_certificate_is_where_kubelet_has_it(member):
    target = member.current.readlink()
    assert target.is_absolute()
    client, serving = {"kubelet-client-current.pem", target.name}, {"kubelet.crt", "kubelet.key"}
    eventually(lambda: {path.name for path in member.pki.iterdir()} == client | serving)
    assert {mode(target), mode(member.kubeconfig)} == {0o600}
    certificate = read_certificates(target.read_text())[0]
    assert (certificate.common_name, certificate.organizations) == (f"system:node:{member.name}", ("system:nodes",))
    assert "-----BEGIN EC PRIVATE KEY-----" in target.read_text()


def test_the_kubeconfig_is_the_one_that_kubelet_writes(member):
    config = yaml.safe_load(member.kubeconfig.read_text())
    pem = str(member.current)
    assert config["users"] == [{"name": "default-auth", "user": {"client-certificate": pem, "client-key": pem}}]
    assert config["contexts"][0] == {
        "name": "default-context",
        "context": {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"},
    }
    assert config["clusters"][0]["cluster"]["server"] == member.plane.url


def test_the_request_is_that_of_a_kubelet(member):
    (request,) = eventually(member.signing_requests)
    assert request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
    assert request["spec"]["usages"] == ["digital signature", "client auth"]
    assert "expirationSeconds" not in request["spec"]
    assert request["metadata"]["name"].startswith("csr-" if member.name.startswith("member-true") else "node-csr-")


def test_the_daemon_has_loaded_neither_cryptography_nor_httpx(member):
    maps = Path(f"/proc/{member.processes[0].pid}/maps").read_text()
    assert "site-packages/msgspec" in maps  # C modules are seen this way
    assert "cryptography" not in maps
    assert "_cffi" not in maps
