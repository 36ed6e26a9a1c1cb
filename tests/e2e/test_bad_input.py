"""What a user reads when something is wrong: what a person must fix ends it, what time can fix does not."""

import json
import socket

import yaml

from tests.cluster.waiting import eventually


def edited(kubeconfig, path, *, cluster=None, user=None):
    """A copy of a kubeconfig with parts of its cluster or user replaced."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= cluster or {}
    if user:
        config["users"][0]["user"] = user
    path.write_text(json.dumps(config))
    return str(path)


def errors(agent):
    return [line for line in agent.log_text().splitlines() if line.startswith("E")]


def test_a_server_that_is_away_is_waited_for(start_node, control_plane, node_name, tmp_path, free_port):
    away = edited(
        control_plane.node_kubeconfig(node_name), tmp_path / "k", cluster={"server": f"https://127.0.0.1:{free_port}"}
    )
    agent = start_node(kubeconfig=away)
    eventually(lambda: any("connection refused" in line and f":{free_port}/" in line for line in errors(agent)))
    assert agent.running


def test_a_server_that_is_not_trusted_is_told_with_the_file_to_look_into(
    start_node, control_plane, node_name, tmp_path
):
    other_ca = str(control_plane.layout.pki / "front-proxy-ca.crt")
    config = yaml.safe_load(control_plane.node_kubeconfig(node_name).read_text())
    config["clusters"][0]["cluster"] = {"server": control_plane.url, "certificate-authority": other_ca}
    path = tmp_path / "untrusting"
    path.write_text(json.dumps(config))
    agent = start_node(kubeconfig=str(path))
    told = eventually(lambda: [line for line in agent.log_text().splitlines() if '"API server unreachable"' in line])
    assert "x509: certificate signed by unknown authority" in told[0]
    assert f"is certificate-authority in {path} that of this cluster?" in told[0]
    assert agent.running


def test_credentials_that_the_server_does_not_know_are_told_and_tried_again(
    start_node, control_plane, node_name, tmp_path
):
    stranger = edited(control_plane.node_kubeconfig(node_name), tmp_path / "k", user={"token": "s3cret-token"})
    agent = start_node("-v", "10", kubeconfig=stranger)
    eventually(lambda: any("Unable to register node" in line and "Unauthorized" in line for line in errors(agent)))
    assert agent.running
    assert "s3cret-token" not in agent.log_text()


def test_a_user_without_rights_is_refused_in_the_servers_words(start_node, control_plane, node_name):
    agent = start_node(kubeconfig=str(control_plane.user_kubeconfig("somebody-else", "somebody-else")))
    eventually(lambda: any("Unable to register node" in line and "somebody-else" in line for line in errors(agent)))
    assert agent.running


def test_a_healthz_port_in_use_is_told_once_and_waited_for_as_a_kubelet_does(start_node, cluster, free_port):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", free_port))
        taken.listen()
        agent = start_node("--healthz-port", str(free_port))
        cluster.wait_until_ready()
    eventually(lambda: socket.create_connection(("127.0.0.1", free_port), timeout=1).close() is None)
    told = [line for line in errors(agent) if "healthz" in line]
    assert len(told) == 1
    assert f"cannot listen on 127.0.0.1:{free_port}" in told[0]
    assert "--healthz-port" in told[0]
