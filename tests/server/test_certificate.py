"""The certificate that our node serves with, and what ends the daemon at its start."""

import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from agent.core.x509 import Certificate, read_certificate
from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NOBODY, Identity, unchecked_tls
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually


@pytest.fixture
def start(
    control_plane: ControlPlane, node_name: str, start_agent: Callable[..., AgentProcess], tmp_path: Path
) -> Callable[..., AgentProcess]:
    """Starts the node with a port of its own."""
    own = (f"--kubeconfig={control_plane.node_kubeconfig(node_name)}", f"--hostname-override={node_name}")

    def run(port: int, *flags: str) -> AgentProcess:
        return start_agent(
            *(*own, "--healthz-port=0", "--address=127.0.0.1", f"--port={port}"),
            *(f"--cert-dir={tmp_path / 'pki'}", *flags),
        )

    return run


def shown(port: int) -> Certificate:
    """The certificate that the node shows to its callers."""
    with socket.create_connection(("127.0.0.1", port)) as plain, unchecked_tls().wrap_socket(plain) as tls:
        der = tls.getpeercert(binary_form=True)
    assert der
    return read_certificate(der)


def test_a_node_makes_its_own_certificate_and_keeps_it(start, node_name, tmp_path) -> None:
    (port,) = free_ports(1)
    agent = start(port)
    first = eventually(lambda: shown(port))
    assert first.common_name.startswith(f"{node_name}@")
    assert first.dns_names == (node_name,)
    assert (tmp_path / "pki" / "kubelet.key").stat().st_mode & 0o777 == 0o600
    agent.stop()
    start(port)
    assert eventually(lambda: shown(port)) == first


def test_a_given_certificate_and_the_client_ca_are_followed_when_they_change(start, control_plane, tmp_path) -> None:
    pki, (port,) = control_plane.layout.pki, free_ports(1)
    files = {name: tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")}

    def put(pair: str, authority: str) -> None:
        for name, source in (("tls.crt", f"{pair}.crt"), ("tls.key", f"{pair}.key"), ("ca.crt", f"{authority}.crt")):
            shutil.copyfile(pki / source, files[name])

    put("apiserver", "front-proxy-ca")
    start(
        port,
        *(f"--tls-cert-file={files['tls.crt']}", f"--tls-private-key-file={files['tls.key']}"),
        *(f"--client-ca-file={files['ca.crt']}", "--authorization-mode=AlwaysAllow"),
    )
    known = Identity("known", (pki / "front-proxy-client.crt", pki / "front-proxy-client.key"))
    admin = Identity("admin", (control_plane.admin_cert, control_plane.admin_key))
    eventually(lambda: known.ask(port, "GET", "/pods").status == 200)
    assert shown(port).common_name == "kube-apiserver"
    assert NOBODY.ask(port, "GET", "/pods").status == 401
    assert is_refused(admin, port)
    with known.connect(port) as old:
        old.request("GET", "/pods")
        answer = old.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        put("front-proxy-client", "ca")
        eventually(lambda: shown(port).common_name == "front-proxy-client")
        old.sock.settimeout(120)
        assert old.sock.recv(1) == b""  # whom the new authority does not know is not served on
    eventually(lambda: is_refused(known, port))
    eventually(lambda: admin.ask(port, "GET", "/pods").status == 200)


def test_without_a_client_ca_that_of_the_kubeconfig_is_trusted_and_followed_when_it_changes(
    start_agent, control_plane, node_name, tmp_path
) -> None:
    """With the defaults: no stranger is served, and the API server and its administrators are."""
    pki, (port,) = control_plane.layout.pki, free_ports(1)
    config = yaml.safe_load(control_plane.node_kubeconfig(node_name).read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    (tmp_path / "ca.crt").write_text((pki / "ca.crt").read_text())
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    start_agent(
        *(f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--hostname-override={node_name}", "--healthz-port=0"),
        *("--address=127.0.0.1", f"--port={port}", f"--cert-dir={tmp_path / 'pki'}"),
    )
    admin = Identity("admin", (control_plane.admin_cert, control_plane.admin_key))
    caller = Identity("API server", (pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key"))
    other = Identity("of another CA", (pki / "front-proxy-client.crt", pki / "front-proxy-client.key"))
    eventually(lambda: admin.ask(port, "GET", "/pods").status == 200)
    assert caller.ask(port, "GET", "/pods").status == 200
    assert NOBODY.ask(port, "GET", "/pods").status == 401
    assert is_refused(other, port)
    with (tmp_path / "ca.crt").open("a") as file:
        file.write((pki / "front-proxy-ca.crt").read_text())
    eventually(lambda: not is_refused(other, port))
    assert other.ask(port, "GET", "/pods").status == 403  # known now, and without rights
    assert admin.ask(port, "GET", "/pods").status == 200


def is_refused(identity: Identity, port: int) -> bool:
    """Whether the handshake fails."""
    try:
        identity.ask(port, "GET", "/pods")
    except OSError:
        return True
    return False


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--client-ca-file=/nowhere/ca.crt",), "--client-ca-file /nowhere/ca.crt"),
        (("--tls-cert-file=/nowhere/a", "--tls-private-key-file=/nowhere/b"), "--tls-cert-file"),
        (("--legacy-flag-defaults", "--anonymous-auth=false"), "no authentication method configured"),
    ],
)
def test_what_cannot_be_served_with_ends_the_daemon_with_a_reason(start, flags, words) -> None:
    agent = start(free_ports(1)[0], *flags)
    eventually(lambda: not agent.running)
    assert agent.stop() == 1
    assert words in agent.log_text()


def test_a_port_that_is_taken_ends_the_daemon_and_without_a_server_nothing_is_taken(start) -> None:
    (port,) = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        agent = start(port)
        eventually(lambda: not agent.running)
        assert agent.stop() == 1
        assert f"cannot listen on 127.0.0.1:{port}" in agent.log_text()
        assert "--port" in agent.log_text()
        quiet = start(port, "--enable-server=false")
        eventually(lambda: "Successfully registered node" in quiet.log_text())
        assert quiet.running
