import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.adapters.installation import Installation, as_service_user, hiding_setting
from agent.cli.install import environment_line, install, with_readable_file
from agent.cli.join import join_configuration
from agent.core.errors import ConfigError

JOIN = (
    *("--join", "192.0.2.1:6443", "--token", "abcdef.0123456789abcdef"),
    "--discovery-token-unsafe-skip-ca-verification",
)


def test_flags_come_out_of_an_environment_file_as_they_went_in():
    words = ["--node-labels=a=b,c=d", "--config=/a dir/$HOME", "it's", 'a "b" \\c `d`']
    line = environment_line("ARGS", words)
    # A shell reads such a file as systemd does, and splits the value by the same rules.
    script = f'{line}\neval "set -- $ARGS"; for word; do printf "%s\\n" "$word"; done'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines() == words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["192.0.2.1:6443"], "unexpected argument 192.0.2.1:6443"),
        (["--token", "abcdef.0123456789abcdef"], "join needs the address of one API server"),
        (["--join", "192.0.2.1:6443"], "join needs --token"),
        (["--node-labels=kubernetes.io/x=y"], "unknown 'kubernetes.io' or 'k8s.io' labels"),
        ([*JOIN, "--client-ca-file=/none/ca.crt"], "there is no /none/ca.crt"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(arguments, message):
    with pytest.raises(ConfigError, match=message):
        install([*arguments, "--dry-run"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that others cannot read")
def test_a_discovery_file_may_be_readable_by_root_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("agent.adapters.installation.USER", "nobody")
    file = tmp_path / "discovery.conf"
    file.write_text("kind: Config")
    file.chmod(0o600)
    join_config = with_readable_file(join_configuration([], {"discovery-file": str(file)}))
    assert as_service_user(Path(join_config.discovery_file).read_text, seconds=60) == "kind: Config"
    with pytest.raises(ConfigError, match=r"cannot read --discovery-file .*/none"):
        with_readable_file(join_configuration([], {"discovery-file": str(tmp_path / "none")}))


def test_the_service_has_to_be_able_to_read_the_command(monkeypatch):
    home = Path(sys.prefix).resolve()
    monkeypatch.setattr("agent.adapters.installation._HIDDEN", {"ProtectHome": (home,)})
    with pytest.raises(
        ConfigError, match=f"the service could not see {home}/.*: its unit has ProtectHome=yes"
    ) as caught:
        install(["--dry-run"])
    assert "python3 -m venv /opt/fake-kubelet && /opt/fake-kubelet/bin/pip install" in caught.value.hint


def test_a_dry_run_needs_neither_root_nor_systemd_and_prints_the_unit_for_the_command():
    said = []
    work = Installation(say=said.append, dry_run=True, command=Path("/opt/there/fake-kubelet"))
    work.write_files()
    work.start()
    assert "ExecStart=/opt/there/fake-kubelet " in "\n".join(said)
    assert said[-1] == "would run systemctl restart --no-block fake-kubelet"


@pytest.mark.parametrize(
    ("place", "unit", "setting"),
    [
        ("/home/me/venv", {}, "ProtectHome"),
        ("/tmp/venv", {}, "PrivateTmp"),  # noqa: S108  as users have it
        ("/opt/venv", {}, ""),
        ("/homeless/venv", {}, ""),
        ("/home/me/venv", {"ProtectHome": "yes"}, "ProtectHome"),
        ("/home/me/venv", {"ProtectHome": "read-only"}, ""),
        ("/home/me/venv", {"ProtectHome": "tmpfs", "BindReadOnlyPaths": "/home/me/venv:/home/me/venv:rbind"}, ""),
        ("/home/me/venv", {"ProtectHome": "tmpfs", "BindReadOnlyPaths": "/home/you:/home/you:rbind"}, "ProtectHome"),
    ],
)
def test_a_place_is_hidden_from_the_service_unless_a_drop_in_shows_it(place, unit, setting):
    assert hiding_setting(Path(place), lambda: unit) == setting
