"""The files of the service, as an attacker meets them who owns its user."""

import os
import pwd
import re
import stat
import tempfile
from pathlib import Path

import pytest

from agent.adapters import installation
from agent.adapters.installation import Installation
from agent.core.errors import ConfigError

ROOT = Path(__file__).parents[3]
UNIT = (ROOT / "systemd" / "fake-kubelet.service").read_text()
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has something to lose")


@pytest.fixture
def machine(monkeypatch):
    """A folder that everybody may enter, with `etc` and `var` of ours, and `outside` that must stay as it is."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("etc", "var", "outside"):
            (top / folder).mkdir(mode=0o755)
        (top / "outside" / "shadow").write_text("root's alone")
        (top / "outside" / "shadow").chmod(0o600)
        monkeypatch.setattr(installation, "FLAGS_FILE", top / "etc" / "install-flags.env")
        monkeypatch.setattr(installation, "_FORMER_FLAGS_FILE", top / "var" / "install-flags.env")
        monkeypatch.setattr(installation, "_UNIT_FILE", top / "etc" / "fake-kubelet.service")
        monkeypatch.setattr(installation, "STATE", top / "var")
        monkeypatch.setattr(installation, "_FILES", ())
        yield top


@pytest.fixture
def said():
    return []


@pytest.fixture
def work(machine, said):
    return Installation(say=said.append, dry_run=False)


def outside(machine):
    folder = machine / "outside"
    return [(path.name, path.lstat().st_uid, path.lstat().st_mode, path.read_text()) for path in folder.iterdir()]


def give_to_nobody(*paths):
    for path in paths:
        os.chown(path, pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid, follow_symlinks=False)


def test_the_unit_reads_and_keeps_nothing_where_its_user_could_replace_it():
    files = re.findall(r"^EnvironmentFile=-?(.*)$", UNIT, re.MULTILINE)
    assert files == ["/etc/fake-kubelet/install-flags.env", "/etc/default/fake-kubelet"]
    assert re.findall(r"^StateDirectory=(.*)$", UNIT, re.MULTILINE) == ["fake-kubelet"]  # nested, links are followed


def test_the_unit_has_a_limit_of_memory_and_nobody_else_is_killed_in_its_place():
    assert re.search(r"^MemoryMax=\d+[MG]$", UNIT, re.MULTILINE)
    assert "OOMScoreAdjust" not in UNIT


def test_flags_are_roots_alone_and_so_is_their_old_copy(machine, work):
    for text in ("A=1\n", "A=2\n"):
        work.write_flags(text)
    for name, text in (("install-flags.env", "A=2\n"), ("install-flags.env.old", "A=1\n")):
        path = machine / "etc" / name
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (text, 0o600)


@pytest.mark.parametrize("plant", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", ["install-flags.env", "install-flags.env.old", ".install-flags.env.old.draft"])
def test_a_link_in_the_flags_place_is_neither_written_through_nor_copied_from(machine, work, plant, name):
    before = outside(machine)
    work.write_flags("A=1\n")
    path = machine / "etc" / name
    path.unlink(missing_ok=True)
    getattr(path, plant)(machine / "outside" / "shadow")
    work.write_flags("A=2\n")
    assert outside(machine) == before
    kept = [path for path in (machine / "etc").iterdir() if path.read_text() == "root's alone"]
    assert kept == []


def test_a_fifo_in_the_flags_place_holds_nobody_up(machine, work):
    os.mkfifo(machine / "etc" / "install-flags.env")
    work.write_flags("A=1\n")
    assert (machine / "etc" / "install-flags.env").read_text() == "A=1\n"


def test_flags_of_an_earlier_version_are_not_lost_without_a_word(machine, work, said):
    (machine / "var" / "install-flags.env").write_text("KUBELET_KUBEADM_ARGS=--node-labels=a=b\n")
    (machine / "etc" / "fake-kubelet.service").write_text(f"EnvironmentFile=-{machine}/var/install-flags.env\n")
    with pytest.raises(ConfigError, match=r"would be lost") as caught:
        work.check_former_flags(has_flags=False)
    assert "give those that you want to `fake-kubelet install` once more" in caught.value.hint
    work.check_former_flags(has_flags=True)
    assert said == [
        f"{machine}/var/install-flags.env is no longer read: the flags are in {machine}/etc/install-flags.env now"
    ]


def test_a_file_that_only_looks_like_an_earlier_versions_holds_nobody_up(machine, work, said):
    (machine / "var" / "install-flags.env").symlink_to(machine / "outside" / "shadow")
    work.check_former_flags(has_flags=False)
    assert len(said) == 1


@root
def test_a_purge_removes_what_is_there_and_follows_no_link(machine, work, said):
    before, state = outside(machine), machine / "var"
    (state / "pki").mkdir()
    (state / "pki" / "kubelet.key").write_text("key")
    (state / "shadow").symlink_to(machine / "outside" / "shadow")
    (state / "link").symlink_to(machine / "outside")
    (state / "hard").hardlink_to(machine / "outside" / "shadow")
    os.mkfifo(state / "fifo")
    give_to_nobody(state, state / "pki")
    work._remove_state()
    assert outside(machine) == before
    assert not state.exists()
    assert said == [f"removed {state}"]


@root
def test_a_purge_removes_only_what_the_owner_of_the_directory_could_remove(machine, work):
    before, state = outside(machine), machine / "var"
    (machine / "outside").rename(state / "outside")  # as a mount of root's would be there
    give_to_nobody(state)
    with pytest.raises(ConfigError, match="Permission denied"):
        work._remove_state()
    (state / "outside").rename(machine / "outside")
    assert outside(machine) == before


def test_a_purge_of_a_link_is_one_line_and_leaves_what_it_points_to(machine, work, said):
    before, state = outside(machine), machine / "var"
    state.rmdir()
    state.symlink_to(machine / "outside")
    work._remove_state()
    assert outside(machine) == before
    assert said == [f"removed {state}, which is a link; kept what is in {machine}/outside"]


@root
@pytest.mark.parametrize("how", ["owner", "everybody"])
def test_what_root_relies_on_must_not_be_the_users(machine, monkeypatch, how):
    monkeypatch.setattr(installation, "USER", "nobody")
    installation.check_owners(machine / "etc" / "fake-kubelet")
    if how == "owner":
        give_to_nobody(machine / "etc")
    else:
        (machine / "etc").chmod(0o777)
    with pytest.raises(ConfigError, match=f"the user nobody may change {machine}/etc, which root relies on"):
        installation.check_owners(machine / "etc" / "fake-kubelet")
