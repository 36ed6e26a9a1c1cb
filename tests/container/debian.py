"""Root file systems of Debian for images, made once from the mirror of this machine and kept."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.command import run
from tests.cluster.kept import kept

_SLIM = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "locale", "man")]


def cache() -> Path:
    """Where we keep what takes long to make."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fake-kubelet" / "container"


def tarball(suite: str, packages: Sequence[str], *, hook: str = "") -> Path:
    """A Debian with these packages as a tar file; the shell command `hook` is run with its root as $1."""
    recipe = [f"--include={','.join(sorted(packages))}", *([f"--customize-hook={hook}"] if hook else [])]
    key = hashlib.sha256(" ".join([suite, *recipe]).encode()).hexdigest()[:12]
    options = ["--quiet", "--variant=minbase", "--aptopt=Acquire::Languages none", *_SLIM, *recipe]

    def make(target: Path) -> None:
        run(["mmdebstrap", *options, suite, str(target), mirror()], timeout=600)

    return kept(cache() / f"{suite}-{key}.tar", make)


def mirror() -> str:
    """The Debian mirror that apt uses here."""
    targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "ShortDesc: Packages"]).split()
    return next(uri for uri in targets if uri.endswith("/debian/"))
