"""A small Debian with systemd, made once and kept: the machine that the tests boot.

`python -m tests.systemd.rootfs` makes it, where that is possible.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_SUITE = "bookworm"
_PACKAGES = (
    "ca-certificates",
    "dbus",
    "initramfs-tools",
    "iproute2",
    "libnss-systemd",
    "libpam-systemd",
    "linux-image-cloud-amd64",
    "polkitd",
    "procps",
    "python3",
    "python3-venv",
    "systemd",
    "systemd-sysv",
    "udev",
    "zstd",
)


class NoRootfs(Exception):
    """A rootfs cannot be made here; the message says why."""


def rootfs() -> Path:
    """The directory of a Debian that was never booted; it is made at the first call, in about two minutes."""
    key = hashlib.sha256(" ".join([_SUITE, *_PACKAGES]).encode()).hexdigest()[:12]
    kept = cache() / f"{_SUITE}-{key}"
    if not kept.exists():
        _make(kept)
    return kept


def cache() -> Path:
    """Where we keep what takes long to make."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fake-kubelet" / "systemd"


def _make(target: Path) -> None:
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        raise NoRootfs("a Debian is made by root with mmdebstrap")
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_suffix(f".{os.getpid()}")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(_PACKAGES)}"]
    options = ["--aptopt=Acquire::Languages none", "--dpkgopt=path-exclude=/usr/share/man/*"]
    done = subprocess.run(
        [*command, *options, _SUITE, str(half), _mirror()], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode != 0:
        shutil.rmtree(half, ignore_errors=True)
        raise NoRootfs(f"mmdebstrap: {done.stderr.strip()[-500:]}")
    half.rename(target)


def _mirror() -> str:
    """The mirror of the machine we run on."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)"]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split()[0] for line in lines if line.endswith(f" {_SUITE}")]
    if not found:
        raise NoRootfs(f"apt knows no mirror of Debian {_SUITE}")
    return found[0]


if __name__ == "__main__":
    try:
        rootfs()
    except NoRootfs as reason:
        sys.stderr.write(f"no machine to test systemd with: {reason}\n")
