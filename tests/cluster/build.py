"""The binaries of the control plane under test: taken from where the user says, from the cache, or built with Go.

`python -m tests.cluster.build` builds them if needed and prints their directory.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.process import leash

MODULE = Path(__file__).parent
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubectl")
KUBELET = ("kubelet", "fakecri")
OWN = ("fakecri", "oracle")  # programs of this module
COMMAND = "python -m tests.cluster.build"


class NoControlPlane(Exception):
    """This machine has no control plane to test against; the message says why."""


def binaries(*, build: bool = True) -> Path:
    """The directory of the binaries; without `build`, only if they are there already."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):  # the envtest convention
        return Path(assets)
    cached = cache_directory()
    if not cached.is_dir():
        if not build:
            raise NoControlPlane(f"it is not built yet; `{COMMAND}` does it (with Go, once)")
        _build_once(cached)
    return cached


def require(directory: Path, *names: str) -> None:
    """Raise NoControlPlane unless all the named binaries are in the directory."""
    if missing := [name for name in names if not os.access(directory / name, os.X_OK)]:
        raise NoControlPlane(f"{directory} lacks {', '.join(missing)}")


def cache_directory() -> Path:
    """Where this version of the binaries is kept, outside the checkout."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", *(f"{program}/main.go" for program in OWN)):
        digest.update((MODULE / name).read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "fake-kubelet" / "control-plane" / digest.hexdigest()[:16]


def kubernetes_version() -> str:
    """The version of Kubernetes that go.mod pins, as `v1.2.3`."""
    match = re.search(r"^\s*k8s\.io/kubernetes (v\d+\.\d+\.\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise NoControlPlane(f"{MODULE / 'go.mod'} pins no version of k8s.io/kubernetes")
    return match[1]


def _build_once(target: Path) -> None:
    """Fill the target with one atomic rename, so that a killed build leaves no half-filled cache."""
    if shutil.which("go") is None:
        raise NoControlPlane("Go is not installed")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with _locked(target.with_suffix(".lock")):
        if target.is_dir():  # another process built it while we waited
            return
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _go_install(partial)
        (partial / "server").rename(partial / "etcd")
        require(partial, *CONTROL_PLANE, *KUBELET, *OWN)
        partial.rename(target)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock, which the kernel frees even if we are killed."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell("waiting for the control plane that another process is building")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go_install(target: Path) -> None:
    """Build all binaries into the target, telling about each when it is done."""
    version = kubernetes_version()
    _tell(f"building Kubernetes {version} for the tests, once: about 8 minutes on two cores")
    log = target / "build.log"
    with log.open("w") as output:
        # On the leash, or a build that outlives us would write into the directory of the next one.
        packages = ["tool", *(f"./{program}" for program in OWN)]
        command = [*leash(), "go", "install", "-trimpath", "-ldflags", _ldflags(version), *packages]
        build = subprocess.Popen(command, cwd=MODULE, env=_environment(target), stdout=output, stderr=output)
    try:
        _watch(build, target)
    except BaseException:
        build.terminate()
        build.wait()
        raise
    if build.returncode != 0:
        raise NoControlPlane("`go install` failed: " + " / ".join(log.read_text().splitlines()[-5:]))
    log.unlink()


def _watch(build: subprocess.Popen[bytes], target: Path) -> None:
    """Name each binary when it appears, until the build ends."""
    start, known = time.monotonic(), {"build.log"}
    running = True
    while running:
        running = build.poll() is None
        for name in sorted({path.name for path in target.iterdir()} - known):
            known.add(name)
            _tell(f"  {'etcd' if name == 'server' else name} after {time.monotonic() - start:.0f} s")
        if running:
            time.sleep(0.5)


def _ldflags(version: str) -> str:
    """What the release builds stamp into the binaries, which otherwise call themselves v0.0.0-master."""
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())])


def _environment(target: Path) -> dict[str, str]:
    """The user's environment, with nothing in it that could change the build."""
    flags = "-buildvcs=false -mod=readonly"
    return os.environ | {"CGO_ENABLED": "0", "GOBIN": str(target), "GOFLAGS": flags, "GOWORK": "off"}


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Print the directory, or why there is none; only CI insists."""
    try:
        print(binaries())
    except NoControlPlane as reason:
        _tell(f"no control plane to test against: {reason}")
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
