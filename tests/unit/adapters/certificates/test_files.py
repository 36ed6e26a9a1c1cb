import os
import stat

import pytest

from agent.adapters.certificates.files import write_whole


@pytest.fixture
def victim(tmp_path):
    """A file elsewhere that must stay as it is."""
    path = tmp_path / "victim"
    path.write_text("precious")
    path.chmod(0o640)
    return path


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder / "kubelet.conf"


@pytest.mark.parametrize("plant", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", [".kubelet.conf.draft", "kubelet.conf"])
def test_a_planted_link_is_replaced_and_not_followed(target, victim, plant, name):
    getattr(target.with_name(name), plant)(victim)
    write_whole(target, "new")
    assert (victim.read_text(), stat.S_IMODE(victim.stat().st_mode)) == ("precious", 0o640)
    assert (target.read_text(), target.is_symlink(), target.stat().st_nlink) == ("new", False, 1)
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_creates_no_file_elsewhere(target, tmp_path):
    target.with_name(".kubelet.conf.draft").symlink_to(tmp_path / "made")
    write_whole(target, "new")
    assert not (tmp_path / "made").exists()


def test_a_fifo_in_the_drafts_place_holds_nobody_up(target):
    os.mkfifo(target.with_name(".kubelet.conf.draft"))
    write_whole(target, "new")
    assert target.read_text() == "new"


def test_whoever_has_an_old_draft_open_does_not_get_to_see_the_new_one(target):
    draft = target.with_name(".kubelet.conf.draft")
    draft.touch(mode=0o666)
    with draft.open() as spy:
        write_whole(target, "secret")
        assert spy.read() == ""
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_folder_in_the_drafts_place_is_an_error_and_is_left_alone(target):
    draft = target.with_name(".kubelet.conf.draft")
    draft.mkdir()
    with pytest.raises(OSError, match="draft"):
        write_whole(target, "new")
    assert draft.is_dir()


def test_a_draft_that_is_found_wrong_leaves_the_old_file_and_nothing_else(target):
    target.write_text("old")

    def refuse(_):
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        write_whole(target, "new", check=refuse)
    assert (target.read_text(), list(target.parent.iterdir())) == ("old", [target])
