"""The files that users start from: clean by the tools of their trade, and taken by a real API server."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def pinned(lock):
    """Each requirement of a lock file with its hashes."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / lock).read_text())
    entries = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(Requirement(entry.split(" --hash=")[0]).name): entry for entry in entries}


LOCKS = {"requirements.lock": ("project", "dependencies"), "requirements-build.lock": ("build-system", "requires")}


@pytest.mark.parametrize(("lock", "place"), LOCKS.items(), ids=LOCKS)
def test_the_lock_pins_what_pyproject_asks_for_by_hash(lock, place):
    with (ROOT / "pyproject.toml").open("rb") as file:
        table, field = place
        asked = tomllib.load(file)[table][field]
    found = pinned(lock)
    for words in asked:
        requirement = Requirement(words)
        pin = Requirement(found[canonicalize_name(requirement.name)].split(" --hash=")[0])
        version = next(iter(pin.specifier)).version
        assert [one.operator for one in pin.specifier] == ["=="], pin
        assert requirement.specifier.contains(version), f"{words}: the lock has {version}"
    for name, entry in found.items():
        assert re.search(r" --hash=sha256:[0-9a-f]{64}", entry), f"{name} has no hash"


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_names_no_index(lock):
    assert "://" not in (ROOT / lock).read_text()


def test_the_image_installs_nothing_without_its_hash():
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert dockerfile.count("--require-hashes") == 2
    assert "--no-index" in dockerfile
    assert "@${DIGEST}" in dockerfile
