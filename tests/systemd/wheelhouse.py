"""fake-kubelet in a Debian, installed from wheels without any network."""

import hashlib
import os
import shutil
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.cluster.command import run
from tests.cluster.kept import kept
from tests.systemd.overlay import layer
from tests.systemd.rootfs import cache

_ROOT = Path(__file__).parents[2]
_PYTHON = "3.11"  # that of Debian 12
_VENV = "/opt/fake-kubelet"
_PARTS = ("agent", "config", "systemd", "pyproject.toml", "README.md", "LICENSE")  # of the checkout, in our wheel
_OLD_SECONDS = 86400.0


def install(debian: Path) -> list[Path]:
    """The layers of a Debian with fake-kubelet in /opt, each of which is made once and kept."""
    dependencies = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    key = hashlib.sha256(" ".join([debian.name, *dependencies]).encode()).hexdigest()[:12]
    venv = kept(cache() / f"venv-{key}", partial(_make_venv, debian=debian, dependencies=dependencies))
    _forget_old_wheels()
    ours = kept(cache() / f"wheel-{key}-{_digest()}", partial(_make_ours, below=[venv, debian]))
    os.utime(ours)
    return [ours, venv, debian]


def _digest() -> str:
    """Of what our wheel is made from."""
    digest = hashlib.sha256()
    files = [
        path for part in _PARTS for path in ((_ROOT / part).rglob("*") if (_ROOT / part).is_dir() else [_ROOT / part])
    ]
    for path in sorted(path for path in files if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(_ROOT)} {path.stat().st_mode} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _forget_old_wheels() -> None:
    """Remove what no run of the last day has used: each change of ours leaves a layer behind."""
    for path in cache().glob("wheel-*"):
        if path.stat().st_mtime < time.time() - _OLD_SECONDS:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _make_venv(target: Path, *, debian: Path, dependencies: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="half-", dir=target.parent) as folder:
        wheels = Path(folder, "wheels")
        _pip("download", f"--python-version={_PYTHON}", "--only-binary=:all:", f"--dest={wheels}", *dependencies)
        with layer(Path(folder), [debian]) as root:
            run(["chroot", str(root), "python3", "-m", "venv", _VENV])
            _install(root, wheels, *dependencies)
        Path(folder, "upper").rename(target)


def _make_ours(target: Path, *, below: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory(prefix="half-", dir=target.parent) as folder:
        wheels = Path(folder, "wheels")
        _pip("wheel", "--no-deps", f"--wheel-dir={wheels}", str(_ROOT))
        with layer(Path(folder), below) as root:
            _install(root, wheels, "--no-deps", "fake-kubelet")
        Path(folder, "upper").rename(target)


def _install(root: Path, wheels: Path, *words: str) -> None:
    (root / "wheels").mkdir()
    script = f'mount --bind "$0" "{root}/wheels" && exec chroot "{root}" {_VENV}/bin/pip "$@"'
    pip = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links=/wheels", *words]
    run(["unshare", "--net", "--mount", "sh", "-c", script, str(wheels), *pip], timeout=240)
    (root / "wheels").rmdir()


def _pip(*words: str) -> None:
    run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words])
