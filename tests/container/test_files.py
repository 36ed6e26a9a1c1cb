"""The files that users start from: clean by the tools of their trade, and taken by a real API server."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.cluster.command import run
from tests.cluster.lacking import lacking

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("tool", "file"), [("hadolint", "Dockerfile"), ("shellcheck", "config/kind/join.sh")], ids=["Dockerfile", "join.sh"]
)
def test_it_is_clean(tool, file):
    beside = Path(sys.executable).with_name(tool)  # where pip puts it
    found = str(beside) if beside.exists() else shutil.which(tool)
    if found is None:
        lacking(f"{tool} is not installed; `make lint` installs it")
    run([found, str(ROOT / file)])


def test_the_api_server_knows_every_field_of_the_manifests(control_plane):
    told = control_plane.kubectl("apply", "-k", str(ROOT / "config/kind"), "--dry-run=client", "--validate=strict")
    assert "statefulset.apps/fake-kubelet created" in told
