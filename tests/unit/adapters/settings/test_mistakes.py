"""The mistakes that tests/parity shows a real kubelet to refuse; here without one."""

import pytest

from agent.adapters.settings import load
from agent.core.errors import ConfigError
from tests.parity.config_case import HEADER
from tests.parity.config_file_mistakes import DROP_INS, FIELDS, WHOLE_FILES
from tests.parity.config_mistakes import FLAGS, ODD_BUT_TAKEN


@pytest.mark.parametrize("mistake", FLAGS, ids=[mistake.given for mistake in FLAGS])
def test_a_wrong_flag_is_named(mistake):
    with pytest.raises(ConfigError) as refused:
        load(mistake.given.split(" "))
    assert mistake.named in str(refused.value)


@pytest.mark.parametrize("mistake", FIELDS, ids=[mistake.given.replace("\n", " ") for mistake in FIELDS])
def test_a_wrong_field_is_named(mistake, tmp_path):
    file = tmp_path / "config.yaml"
    needs_no_cgroups = "" if "cgroupsPerQOS" in mistake.given else "cgroupsPerQOS: false\n"
    enforced = "" if "enforceNodeAllocatable" in mistake.given else "enforceNodeAllocatable: []\n"
    file.write_text(f"{HEADER}{needs_no_cgroups}{enforced}{mistake.given}\n")
    with pytest.raises(ConfigError) as refused:
        load([f"--config={file}"])
    assert mistake.named in str(refused.value)


@pytest.mark.parametrize("mistake", WHOLE_FILES, ids=[mistake.named for mistake in WHOLE_FILES])
def test_a_file_of_another_kind_is_named(mistake, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(mistake.given)
    with pytest.raises(ConfigError) as refused:
        load([f"--config={file}"])
    assert mistake.named in str(refused.value)


@pytest.mark.parametrize("mistake", DROP_INS, ids=[mistake.named for mistake in DROP_INS])
def test_a_wrong_drop_in_is_named(mistake, tmp_path):
    (tmp_path / "a.conf").write_text(mistake.given.replace("{header}", HEADER))
    with pytest.raises(ConfigError) as refused:
        load([f"--config-dir={tmp_path}"])
    assert mistake.named in str(refused.value)


@pytest.mark.parametrize("flag", ODD_BUT_TAKEN)
def test_an_odd_flag_is_taken(flag):
    load([flag])


def test_everything_that_is_wrong_is_told_at_once():
    with pytest.raises(ConfigError) as refused:
        load(["--max-pods=-1", "--event-qps=-1"])
    assert str(refused.value) == (
        "failed to validate kubelet configuration, error: "
        "[invalid configuration: eventRecordQPS (--event-qps) -1 must not be a negative number, "
        "invalid configuration: maxPods (--max-pods) -1 must not be a negative number]"
    )
