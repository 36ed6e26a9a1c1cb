import json
import os
import shlex
import subprocess
import sys

import pytest

from agent import __version__
from agent.adapters.settings import load
from agent.adapters.settings.table import FLAGS
from agent.core.errors import ConfigError
from agent.core.pressure import DEFAULT_HARD
from tests.settings import CHECK


def test_help_tells_of_every_flag_that_is_not_removed(fake_kubelet):
    shown = fake_kubelet("--help")
    assert shown.returncode == 0
    for flag in FLAGS.values():
        assert (f"--{flag.name} " in shown.stdout or f"--{flag.name}\n" in shown.stdout) is not bool(flag.removed)
    assert " demo " in shown.stdout


def test_help_is_grouped(fake_kubelet):
    titles = [line for line in fake_kubelet("-h").stdout.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [
        "Configuration:",
        "Registration and identity:",
        "Heartbeat:",
        "Resources:",
        "Eviction:",
        "Serving:",
        "TLS:",
        "Logging:",
        "Only in fake-kubelet:",
        "Accepted, no effect:",
        "Commands:",
    ]


def test_the_version_names_the_kubelet_that_it_follows_and_ours():
    shown = subprocess.run([sys.executable, "-m", "agent", "--version"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, f"Kubernetes v1.36.3 (fake-kubelet {__version__})\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--no-such-flag"], "failed to parse kubelet flag: unknown flag: --no-such-flag"),
        (["--hostname-overide=n1"], "unknown flag: --hostname-overide; did you mean --hostname-override?"),
        (["--max_pod", "5"], "unknown flag: --max_pod; did you mean --max-pods?"),
        (["healthchek"], "unknown command healthchek; did you mean healthcheck?"),
        (["--max-pods", "many"], "--max-pods"),
        (["--register-node=maybe"], "--register-node"),
        (["start"], "unknown command start"),
        (["--hostname-override", "a_b", "--kubeconfig", "/k"], "give another with --hostname-override"),
        (["--kubeconfig", "/no/such/file"], "cannot read --kubeconfig /no/such/file: No such file or directory"),
        (["--kubeconfig", "/k", "--eviction-hard", "memory.available"], "--eviction-hard"),
        (["--kubeconfig", "/k", "--port=0"], "port (--port) 0 must be between 1 and 65535"),
        ([*CHECK, "--max-pods=-1"], "maxPods (--max-pods) -1 must not be a negative number"),
        ([*CHECK, "--reserved-cpus=9999"], "reserved-cpus: 9999 is not a subset of online-cpus"),
        ([*CHECK, "--kube-reserved=memory=9Pi"], "has a reservation of 9Pi but capacity"),
        ([*CHECK, "--kubeconfig=/no"], "cannot read --kubeconfig /no: No such file or directory"),
        ([*CHECK, "--kubeconfig=/no", "--bootstrap-kubeconfig=/b"], "cannot read --kubeconfig /b"),
        (["config", "show", "-o", "xml"], "-o must be yaml or json"),
        (["config", "show", "more"], "unexpected argument more"),
        (["demo", "--for", "30"], "missing unit in duration"),
        (["--max-pods=5", "demo"], "demo takes no flags of kubelet"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_1(fake_kubelet, arguments, said):
    failed = fake_kubelet(*arguments)
    assert failed.returncode == 1
    line, *hints = [line for line in failed.stderr.splitlines() if not line.startswith("I")]
    assert all(hint.startswith("hint: ") for hint in hints)
    assert len(hints) <= 1
    assert line.startswith(("E", "error: "))
    assert said in line.replace('\\"', '"')


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        ("demo --fr 3s", "unknown flag: --fr; did you mean --for?", "fake-kubelet demo --help lists what it takes"),
        ("demo --for", "option '--for' requires an argument", ""),
        ("completion", "missing argument", "fake-kubelet completion --help lists what it takes"),
        ("config chek", "unknown command config chek; did you mean check?", ""),
        ("config", "config needs a command: show or check", ""),
        ("helathcheck", "unknown command helathcheck; did you mean healthcheck?", "fake-kubelet --help lists"),
        ("join 192.0.2.1:6443", "join needs --token to find the cluster with", "`kubeadm token create --print-join"),
        (
            "join 192.0.2.1 --token abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification",
            '"192.0.2.1" is no address of an API server',
            "fake-kubelet join 192.0.2.1:6443 --token",
        ),
        (f"{' '.join(CHECK)} --kubeconfig={{folder}}/none", "cannot read --kubeconfig", ""),
    ],
)
def test_a_command_says_what_is_wrong_and_what_to_do_each_on_one_line(fake_kubelet, tmp_path, arguments, error, hint):
    failed = fake_kubelet(*arguments.format(folder=tmp_path).split())
    first, *others = failed.stderr.splitlines()
    assert failed.returncode == 1
    assert first.startswith(f"error: {error}")
    assert [line[: len(hint) + 6] for line in others] == ([f"hint: {hint}"] if hint else [])


def test_a_daemon_without_a_cluster_has_its_hint_in_the_log(fake_kubelet):
    failed = fake_kubelet("--hostname-override=n1", "--healthz-port=0")
    assert '"command failed" err="no --kubeconfig given' in failed.stderr
    assert 'hint="name a cluster with --kubeconfig FILE' in failed.stderr


@pytest.mark.parametrize("arguments", [["--max-pods", "many"], ["config", "show", "-o", "xml"]])
def test_on_a_terminal_an_error_is_for_people(arguments):
    terminal, end = os.openpty()
    argv = [sys.executable, "-m", "agent", *arguments]
    ended = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=end, check=False)
    os.close(end)
    said = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert ended.returncode == 1
    assert said.startswith("error: ")
    assert len(said.splitlines()) == 1


def test_flags_are_logged_from_verbosity_1_on_without_secrets(fake_kubelet):
    given = ["--kubeconfig=/no", "--max-pods=7", "--manifest-url-header=Authorization:s3cret"]
    plain, told = fake_kubelet(*given).stderr, fake_kubelet(*given, "-v=1").stderr
    assert "FLAG" not in plain
    lines = [line.partition("] ")[2] for line in told.splitlines() if "FLAG" in line]
    names = [line.partition("=")[0] for line in lines]
    assert names == sorted(names)
    assert {'FLAG: --max-pods="7"', 'FLAG: --v="1"', 'FLAG: --manifest-url-header="Authorization:<masked>"'} <= set(
        lines
    )
    assert "s3cret" not in told


def test_check_says_what_has_no_effect_and_starts_nothing(fake_kubelet):
    checked = fake_kubelet(*CHECK, "--hostname-override=n1", "--cgroup-driver=systemd")
    assert (checked.returncode, checked.stdout) == (0, "The settings of node n1 are valid.\n")
    assert checked.stderr == "warning: Flags are accepted and have no effect here: --cgroup-driver\n"


def test_flags_may_stand_before_config_show(fake_kubelet):
    shown = json.loads(fake_kubelet("--max-pods=5", "config", "show", "-o=json", "--port=1").stdout)
    assert (shown["kubeletconfig"]["maxPods"], shown["kubeletconfig"]["port"]) == (5, 1)
    assert shown["origins"]["maxPods"] == "--max-pods"


def test_what_config_show_prints_is_a_config_file_with_the_same_meaning(fake_kubelet, tmp_path):
    first = fake_kubelet("config", "show", "--max-pods=29", "--sensor-interval=2s", "--kube-reserved=cpu=1")
    assert "\nmaxPods: 29  # --max-pods\n" in first.stdout
    assert "\nevictionHard:  # kubelet's default with a config file\n" in first.stdout
    (tmp_path / "config.yaml").write_text(first.stdout)
    again = fake_kubelet("config", "show", f"--config={tmp_path / 'config.yaml'}")
    assert "\nsensorInterval: 2s  # " in again.stdout
    assert without_comments(again.stdout) == without_comments(first.stdout)


def test_help_shows_the_defaults_that_hold(fake_kubelet):
    entries = fake_kubelet("--help").stdout.split("\n  --")
    shown = {entry.partition(" ")[0]: "".join(entry.split()) for entry in entries}
    thresholds = ",".join(f"{signal}<{amount}" for signal, amount in DEFAULT_HARD.items())
    assert shown["eviction-hard"].endswith(f"Default:{thresholds}.")
    assert shown["authorization-mode"].endswith("Default:Webhook.")
    assert shown["authentication-token-webhook"].endswith("Default:true.")
    assert shown["client-ca-file"].endswith("Default:thecluster'sCA,as--kubeconfighasit.")
    for name in ("anonymous-auth", "read-only-port", "legacy-flag-defaults"):  # false, and none
        assert "Default" not in shown[name]


def test_config_show_says_whose_client_certificates_are_trusted_and_what_the_legacy_defaults_are(fake_kubelet):
    trusting = "\n  x509: {}  # client certificates: of the cluster's CA, if "
    assert trusting in fake_kubelet("config", "show").stdout
    legacy = fake_kubelet("config", "show", "--legacy-flag-defaults").stdout
    assert trusting not in legacy
    assert "\nreadOnlyPort: 10255  # --legacy-flag-defaults\n" in legacy
    assert "\n  mode: AlwaysAllow  # --legacy-flag-defaults\n" in legacy
    assert "evictionHard" not in legacy


def without_comments(text):
    return {line.partition("  #")[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fake-kubelet --max-p", {"--max-pods"}),
        ("fake-kubelet --kubeconfig /k --eviction-s", {"--eviction-soft", "--eviction-soft-grace-period"}),
        ("fake-kubelet com", {"completion"}),
        ("fake-kubelet config sh", {"show"}),
        ("fake-kubelet config show --pods", {"--pods", "--pods-per-core"}),
    ],
)
def test_a_shell_completes_flags_and_commands(fake_kubelet, typed, offered):
    asked = {
        "_FAKE_KUBELET_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    assert set(fake_kubelet(env=asked).stdout.split()) == offered


CHOICES = [
    ("--pods", {"simulate", "refuse", "ignore"}),
    ("--on-node-deleted", {"register", "idle", "exit"}),
    ("--status-page", {"loopback", "all", "none"}),
    ("--capacity-from", {"host", "cgroup"}),
    ("--node-ip-type", {"InternalIP", "ExternalIP"}),
    ("--logging-format", {"text", "json"}),
    ("--authorization-mode", {"AlwaysAllow", "Webhook"}),
    ("--tls-min-version", {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}),
    ("config show -o", {"yaml", "json"}),
    ("config show --output", {"yaml", "json"}),
    ("completion", {"bash", "zsh", "fish"}),
]


@pytest.mark.parametrize(("typed", "offered"), CHOICES)
def test_a_shell_completes_the_values_of_a_flag_after_a_space(fake_kubelet, typed, offered):
    line = f"fake-kubelet --deregister=true {typed} "
    assert set(in_fish(fake_kubelet, line)) == offered
    first = min(offered)
    assert set(in_fish(fake_kubelet, line + first[:-1])) == {value for value in offered if value.startswith(first[:-1])}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["--pods", ""], ["simulate", "refuse", "ignore"]),
        (["--pods", "s"], ["simulate"]),
        (["--pods", "="], ["simulate", "refuse", "ignore"]),
        (["--pods", "=", "s"], ["simulate"]),
        (["--anonymous-auth", "="], ["true", "false"]),
        (["--anonymous-auth", "=", "f"], ["false"]),
        (["--anonymous-auth", "=", "false", "config", "s"], ["show"]),
        (["--anonymous-auth", "con"], ["config"]),
        (["--pods", "=", "refuse", "config", "show", "-o", "j"], ["json"]),
    ],
)
def test_bash_itself_completes_values(fake_kubelet, tmp_path, words, offered):
    """bash makes three words of `--pods=s`, and puts what is offered in the place of the last."""
    (tmp_path / "script").write_text(fake_kubelet("completion", "bash").stdout)
    typed = shlex.join(["fake-kubelet", *words])
    line = f'. ./script; COMP_WORDS=({typed}) COMP_CWORD={len(words)}; _fake_kubelet_completion "./fake-kubelet"'
    command = tmp_path / "fake-kubelet"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m agent "$@"\n')
    command.chmod(0o755)
    script = f'{line}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("--pods=", ["--pods=simulate", "--pods=refuse", "--pods=ignore"]),
        ("--pods=s", ["--pods=simulate"]),
        ("--anonymous-auth=t", ["--anonymous-auth=true"]),
        ("--kubeconfig=/", []),
    ],
)
def test_fish_and_zsh_complete_a_flag_and_its_value_as_one_word(fake_kubelet, word, offered):
    line = f"fake-kubelet config show {word}"
    assert in_fish(fake_kubelet, line) == offered
    asked = {"_FAKE_KUBELET_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    printed = fake_kubelet(env=asked).stdout
    assert printed.count('"') == 2 * len(offered)
    assert all(value.rpartition("=")[2] in printed for value in offered)


def in_fish(fake_kubelet, line):
    asked = {
        "_FAKE_KUBELET_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": line,
    }
    return [shown.partition("\t")[0] for shown in fake_kubelet(env=asked).stdout.splitlines() if shown]


def test_the_choices_of_every_flag_are_checked_where_they_come_from():
    for flag in FLAGS.values():
        for value in flag.choices:
            load(["--hostname-override=n", f"--{flag.name}={value}"])
        if flag.choices:
            with pytest.raises(ConfigError, match="nonsense"):
                load(["--hostname-override=n", f"--{flag.name}=nonsense"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_names_our_command(fake_kubelet, shell):
    assert "_FAKE_KUBELET_COMPLETE" in fake_kubelet("completion", shell).stdout
