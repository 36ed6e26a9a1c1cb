"""The binaries that tests run against: taken from where the user says, from the cache, or built with Go.

`python -m tests.cluster.build` builds them if needed and prints their directories.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.kept import locked
from tests.cluster.process import leash

HERE = Path(__file__).parent
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubeadm", "kubectl")
KUBELET = ("kubelet", "fakecri")
OWN = ("fakecri", "oracle")  # programs of this module
COMMAND = "python -m tests.cluster.build"


class NoControlPlane(Exception):
    """This machine has no control plane to test against; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """Programs that are built together: one Go module here, one directory in the cache."""

    title: str
    folder: Path  # of the go.mod
    cache: str
    pinned: str  # the Go module whose version they have
    version_package: str  # where that version is stamped into them
    minutes: int  # on two cores, about
    programs: tuple[str, ...]
    own: tuple[str, ...] = ()  # programs of our module itself

    @property
    def directory(self) -> Path:
        """Where this version of them is kept, outside the checkout."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum", *(f"{program}/main.go" for program in self.own)):
            digest.update((self.folder / name).read_bytes())
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return home / "fake-kubelet" / self.cache / digest.hexdigest()[:16]

    @property
    def version(self) -> str:
        """The version that go.mod pins, as `v1.2.3`."""
        text = (self.folder / "go.mod").read_text()
        match = re.search(rf"^\s*{re.escape(self.pinned)} (v\d+\.\d+\.\d+)", text, re.MULTILINE)
        if match is None:
            raise NoControlPlane(f"{self.folder / 'go.mod'} pins no version of {self.pinned}")
        return match[1]


KUBERNETES = Toolset(
    title="Kubernetes",
    folder=HERE,
    cache="control-plane",
    pinned="k8s.io/kubernetes",
    version_package="k8s.io/component-base/version",
    minutes=8,
    programs=(*CONTROL_PLANE, *KUBELET),
    own=OWN,
)
KUBELET_DATA = Toolset(
    title="the source of the kubelet's data",
    folder=HERE,
    cache="kubelet-data",
    pinned="k8s.io/kubernetes",
    version_package="k8s.io/component-base/version",
    minutes=4,
    programs=(),
    own=("kubeletdata",),
)
METRICS_SERVER = Toolset(
    title="metrics-server",
    folder=HERE / "metrics-server",
    cache="metrics-server",
    pinned="sigs.k8s.io/metrics-server",
    version_package="k8s.io/client-go/pkg/version",
    minutes=5,
    programs=("metrics-server",),
)


def binaries(*, build: bool = True) -> Path:
    """The directory of Kubernetes' binaries; without `build`, only if they are there already."""
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):  # the envtest convention
        return Path(assets)
    return built(KUBERNETES, build=build)


def built(tools: Toolset, *, build: bool = True) -> Path:
    """The directory of a toolset in the cache; without `build`, only if it is there already."""
    if not tools.directory.is_dir():
        if not build:
            raise NoControlPlane(f"{tools.title} is not built yet; `{COMMAND}` does it (with Go, once)")
        _build_once(tools)
    return tools.directory


def require(directory: Path, *names: str) -> None:
    """Raise NoControlPlane unless all the named binaries are in the directory."""
    if missing := [name for name in names if not os.access(directory / name, os.X_OK)]:
        raise NoControlPlane(f"{directory} lacks {', '.join(missing)}")


def _build_once(tools: Toolset) -> None:
    """Fill the cache with one atomic rename, so that a killed build leaves no half-filled one."""
    if shutil.which("go") is None:
        raise NoControlPlane("Go is not installed")
    target = tools.directory
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with locked(target.with_suffix(".lock")):
        if target.is_dir():  # another process built it while we waited
            return
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        _go_install(tools, partial)
        if (etcd := partial / "server").exists():
            etcd.rename(partial / "etcd")
        require(partial, *tools.programs, *tools.own)
        partial.rename(target)


def _go_install(tools: Toolset, target: Path) -> None:
    """Build all binaries into the target, telling about each when it is done."""
    _tell(f"building {tools.title} {tools.version} for the tests, once: about {tools.minutes} minutes on two cores")
    log = target / "build.log"
    with log.open("w") as output:
        # On the leash, or a build that outlives us would write into the directory of the next one.
        packages = [*(["tool"] if tools.programs else []), *(f"./{program}" for program in tools.own)]
        command = [*leash(), "go", "install", "-trimpath", "-ldflags", _ldflags(tools), *packages]
        build = subprocess.Popen(command, cwd=tools.folder, env=_environment(target), stdout=output, stderr=output)
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


def _ldflags(tools: Toolset) -> str:
    """What the release builds stamp into the binaries, which otherwise call themselves v0.0.0-master."""
    major, minor, _ = tools.version.removeprefix("v").split(".")
    stamps = {"gitVersion": tools.version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {tools.version_package}.{name}={value}" for name, value in stamps.items())])


def _environment(target: Path) -> dict[str, str]:
    """The user's environment, with nothing in it that could change the build."""
    flags = "-buildvcs=false -mod=readonly"
    return os.environ | {"CGO_ENABLED": "0", "GOBIN": str(target), "GOFLAGS": flags, "GOWORK": "off"}


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Print the directories, or why there are none; only CI insists."""
    try:
        print(binaries())
        print(built(KUBELET_DATA))
        print(built(METRICS_SERVER))
    except NoControlPlane as reason:
        _tell(f"no control plane to test against: {reason}")
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
