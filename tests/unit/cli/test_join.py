import subprocess
import sys

import pytest

from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import effective
from agent.cli.join import CredentialPaths, daemon_flags, join_configuration, split_arguments
from agent.core.errors import ConfigError

HASH = f"sha256:{'a' * 64}"
TOKEN = "abcdef.0123456789abcdef"


def test_our_words_are_told_from_the_daemons():
    ours, theirs = split_arguments(
        [
            "--node-labels",
            "a=b",
            "192.0.2.1:6443",
            "--token",
            TOKEN,
            "-v",
            "2",
            "--rotate-certificates",
            "--node_name=n",
        ]
    )
    assert ours == ["192.0.2.1:6443", "--token", TOKEN, "--node_name=n"]
    assert theirs == ["--node-labels", "a=b", "-v", "2", "--rotate-certificates"]


def test_a_token_never_reaches_the_daemons_command_line():
    words = [f"--token={TOKEN}", "--discovery-token", TOKEN, "--tls-bootstrap-token", TOKEN, "192.0.2.1:6443"]
    assert split_arguments(words)[1] == []


@pytest.mark.parametrize(
    ("words", "flags", "message"),
    [
        ([], {}, "HOST:PORT, or --discovery-file"),
        (["a:1", "b:1"], {"token": TOKEN}, "HOST:PORT, or --discovery-file"),
        (["a:1"], {"discovery-file": "f"}, "HOST:PORT, or --discovery-file"),
        (["a:1"], {}, "needs --token"),
        (["a:1"], {"token": TOKEN}, "can be unsafe"),
        (["a"], {"token": TOKEN, "discovery-token-ca-cert-hash": [HASH]}, "no address of an API server"),
        (["https://a:1"], {"token": TOKEN, "discovery-token-ca-cert-hash": [HASH]}, "no address of an API server"),
        (["a:1"], {"token": "x", "discovery-token-ca-cert-hash": [HASH]}, "not of the form"),
    ],
)
def test_too_little_or_too_much_is_refused(words, flags, message):
    with pytest.raises(ConfigError, match=message):
        join_configuration(words, flags)


def test_one_token_does_for_both_purposes_and_two_may_differ():
    other = "fedcba.0123456789abcdef"
    flags = {"token": TOKEN, "discovery-token-ca-cert-hash": [HASH]}
    assert join_configuration(["a:1"], flags).bootstrap_token == TOKEN
    join_config = join_configuration(["a:1"], flags | {"discovery-token": other})
    assert (join_config.token.id, join_config.bootstrap_token) == ("fedcba", TOKEN)


def test_an_ipv6_address_is_an_address():
    join_config = join_configuration(["[2001:db8::1]:6443"], {"token": TOKEN, "discovery-token-ca-cert-hash": [HASH]})
    assert join_config.endpoint == "[2001:db8::1]:6443"


def test_the_daemon_gets_what_kubeadm_would_tell_a_kubelet_and_nothing_twice():
    said = ["--kubeconfig=/a", "--rotate-certificates=false"]
    settings = effective(said)
    flags = daemon_flags(said, CredentialPaths.from_settings(settings), settings)
    assert flags[:2] == said
    assert [flag for flag in flags[2:] if flag.startswith(("--kubeconfig", "--rotate"))] == []
    assert any(flag.startswith("--bootstrap-kubeconfig=") for flag in flags)
    assert any(flag.startswith("--client-ca-file=") for flag in flags)


def test_a_node_that_joined_serves_nobody_whom_the_cluster_does_not_know():
    settings = effective(["--read-only-port=10255"])
    flags = daemon_flags(["--read-only-port=10255"], CredentialPaths.from_settings(settings), settings)
    serving = build_config(effective(flags)).process.serving
    assert (serving.anonymous, serving.token_reviews, serving.access_reviews) == (False, True, True)
    assert serving.read_only_port == 10255  # as the user said


def test_help_names_kubeadms_flags():
    shown = subprocess.run(
        [sys.executable, "-m", "agent", "join", "--help"], capture_output=True, text=True, check=True
    )
    assert "--discovery-token-ca-cert-hash HASH" in shown.stdout
