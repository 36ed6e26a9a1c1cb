"""fake-kubelet in a Debian, installed from wheels without any network."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.command import run
from tests.systemd.overlay import layer
from tests.systemd.rootfs import cache

_ROOT = Path(__file__).parents[2]
_PYTHON = "3.11"  # that of Debian 12
_VENV = "/opt/fake-kubelet"


def install(debian: Path, directory: Path) -> list[Path]:
    """The layers of a Debian with fake-kubelet in /opt; all but our own wheel is made once and kept."""
    wheels = directory / "wheels"
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(_ROOT))
    dependencies = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    key = hashlib.sha256(" ".join([debian.name, *dependencies]).encode()).hexdigest()[:12]
    kept = cache() / f"venv-{key}"
    if not kept.exists():
        _make_venv(kept, debian, dependencies)
    with layer(directory / "layer", [kept, debian]) as root:
        _install(root, wheels, "--no-deps", "fake-kubelet")
    return [directory / "layer" / "upper", kept, debian]


def _make_venv(target: Path, debian: Path, dependencies: Sequence[str]) -> None:
    half = target.with_suffix(f".{os.getpid()}")
    where = ("--python-version", _PYTHON, "--only-binary=:all:", "--dest", str(half / "wheels"))
    _pip("download", *where, *dependencies)
    with layer(half, [debian]) as root:
        run(["chroot", str(root), "python3", "-m", "venv", _VENV])
        _install(root, half / "wheels", *dependencies)
    (half / "upper").rename(target)
    shutil.rmtree(half)


def _install(root: Path, wheels: Path, *words: str) -> None:
    (root / "wheels").mkdir()
    script = f'mount --bind "$0" "{root}/wheels" && exec chroot "{root}" {_VENV}/bin/pip "$@"'
    pip = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links=/wheels", *words]
    run(["unshare", "--net", "--mount", "sh", "-c", script, str(wheels), *pip], timeout=240)
    (root / "wheels").rmdir()


def _pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True)
