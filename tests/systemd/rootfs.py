"""A small Debian with systemd, made once and kept: the machine that the tests boot.

`python -m tests.systemd.rootfs` makes it, where that is possible.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from tests.cluster.command import CommandFailed, run
from tests.cluster.kept import kept

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
    return kept(cache() / f"{_SUITE}-{key}", _make)


def cache() -> Path:
    """Where we keep what takes long to make."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fake-kubelet" / "systemd"


def _make(target: Path) -> None:
    if shutil.which("mmdebstrap") is None or os.geteuid() != 0:
        raise NoRootfs("a Debian is made by root with mmdebstrap")
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(_PACKAGES)}"]
    options = ["--aptopt=Acquire::Languages none", "--dpkgopt=path-exclude=/usr/share/man/*"]
    try:
        run([*command, *options, _SUITE, str(target), _mirror()], timeout=600)
    except CommandFailed as failure:
        raise NoRootfs(f"mmdebstrap: {failure.said[-500:]}") from failure


def _mirror() -> str:
    """The mirror of the machine we run on."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)"]
    found = [line.split()[0] for line in run(words).splitlines() if line.endswith(f" {_SUITE}")]
    if not found:
        raise NoRootfs(f"apt knows no mirror of Debian {_SUITE}")
    return found[0]


if __name__ == "__main__":
    try:
        rootfs()
    except NoRootfs as reason:
        sys.stderr.write(f"no machine to test systemd with: {reason}\n")
