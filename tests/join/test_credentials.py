"""Credentials that are no client certificate, against a real API server: each makes a Ready node."""

import json
import shlex
import sys
from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.join.account import USER, pod_token
from tests.join.connect_proxy import ConnectProxy

MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def token(rbac, node_name):
    """The token of a pod of the node's name, whose service account has the rights of config/rbac."""
    with pod_token(rbac, node_name) as token:
        yield token


@pytest.fixture
def member(token, machine):
    """A machine that is to be a node with that token; its processes end before the token does."""
    return machine


def assert_member(machine):
    machine.wait_until_ready()
    eventually(lambda: machine.users() == {USER})
    assert machine.refusals() == []


def test_an_exec_plugin_knows_the_token(member, token):
    status = {"token": token}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (member.folder / "credential.json").write_text(json.dumps(credential))
    plugin = member.folder / "plugin"
    plugin.write_text(f"#!/bin/sh\ncat {shlex.quote(str(member.folder / 'credential.json'))}\n")
    plugin.chmod(0o700)
    command = {"command": "./plugin", "apiVersion": credential["apiVersion"], "interactiveMode": "Never"}
    member.write_kubeconfig({"exec": command})
    member.start_by_kubeconfig()
    assert_member(member)


def test_a_token_file_that_changes_is_read_again(member, token):
    path = member.folder / "token"
    path.write_text("not yet\n")
    member.write_kubeconfig({"tokenFile": "token"})
    member.start_by_kubeconfig()
    eventually(lambda: "Unauthorized" in member.log_text())
    path.write_text(token + "\n")
    member.wait_until_ready()
    eventually(lambda: USER in member.users())


def test_a_custom_authority_may_be_a_file_beside_the_kubeconfig(member, token):
    (member.folder / "ca.crt").write_text(member.plane.ca_file.read_text())
    authority = {"certificate-authority": "ca.crt", "certificate-authority-data": None}
    member.write_kubeconfig({"token": token}, **authority)
    member.start_by_kubeconfig()
    assert_member(member)


@pytest.mark.usefixtures("root")
def test_in_a_pod_the_service_account_is_found_without_a_kubeconfig(member, token):
    account = member.folder / "account"
    account.mkdir()
    (account / "token").write_text(token)
    (account / "ca.crt").write_text(member.plane.ca_file.read_text())
    (account / "namespace").write_text("fake-kubelet")
    # A folder of the test's own stands in for /var/run, so that nothing of the machine changes.
    daemon = [sys.executable, "-m", "agent", f"--hostname-override={member.name}", "--healthz-port=0", *member.apart]
    script = (
        f"mount -t tmpfs none /var/run && mkdir -p {MOUNT} && mount --bind {shlex.quote(str(account))} {MOUNT} && "
        f"exec {shlex.join(daemon)}"
    )
    env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(member.plane.layout.apiserver)}
    argv = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script]
    pod = Process("pod", argv, log=member.folder / "fake-kubelet.log", env=env)
    pod.start()
    member.processes.append(pod)
    assert_member(member)


def node_certificate(machine, begin):
    """What the cluster's signer would make for the node, if its clock were ahead: embedded, as for a kubeconfig."""
    pki = machine.plane.layout.pki
    authority = x509.load_pem_x509_certificate((pki / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((pki / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    words = ((NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{machine.name}"))
    builder = x509.CertificateBuilder(
        subject_name=x509.Name([x509.NameAttribute(kind, text) for kind, text in words]),
        issuer_name=authority.subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=begin,
        not_valid_after=begin + timedelta(hours=1),
    ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pair = {"client-certificate-data": certificate, "client-key-data": key.private_bytes(*form)}
    return {name: b64encode(pem).decode() for name, pem in pair.items()}


def test_where_clocks_differ_a_certificate_that_is_not_good_yet_is_used_as_soon_as_it_is(machine):
    for seconds in (5, 60):  # the second time for a machine that takes longer than that to start it
        begin = datetime.now(UTC) + timedelta(seconds=seconds)
        machine.write_kubeconfig(node_certificate(machine, begin))
        process = machine.start_by_kubeconfig()
        eventually(lambda begin=begin: "Unauthorized" in machine.log_text() or datetime.now(UTC) > begin)
        if "Unauthorized" in machine.log_text():
            break
        process.stop()
    assert "Unauthorized" in machine.log_text()
    machine.wait_until_ready()
    assert process.running
    eventually(lambda: f"system:node:{machine.name}" in machine.users())


def test_labels_that_a_node_may_not_give_itself_are_refused_before_anything_is_sent(machine):
    process = machine.start("--node-labels=node-role.kubernetes.io/worker=")
    eventually(lambda: not process.running)
    assert process.stop() == 1
    assert "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels" in machine.log_text()
    assert machine.requests() == []
    assert not machine.pki.exists()


@pytest.mark.parametrize("named_by", ["the kubeconfig", "the environment"])
def test_the_way_may_lead_through_a_proxy_that_alone_knows_the_server(member, token, named_by, monkeypatch):
    with ConnectProxy(member.plane.layout.apiserver) as proxy:
        address, server = f"http://127.0.0.1:{proxy.port}", "https://kubernetes.default.svc:6443"
        if named_by == "the environment":
            monkeypatch.setenv("HTTPS_PROXY", address)
            member.write_kubeconfig({"token": token}, server=server)
        else:
            member.write_kubeconfig({"token": token}, **{"server": server, "proxy-url": address})
        process = member.start_by_kubeconfig()
        assert_member(member)
        assert set(proxy.asked) == {"CONNECT kubernetes.default.svc:6443 HTTP/1.1"}
        assert process.stop() == 0
