"""podman and buildah with images and containers of our own, beside those that the machine may have."""

import json
import os
import resource
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tests.cluster.command import CommandFailed, run
from tests.cluster.kept import locked
from tests.container.debian import cache

TOOLS = ("buildah", "mmdebstrap", "podman", "runc")
# The machine's authorities, for those who build behind a proxy that has one of its own; they do not stay in the image.
_AUTHORITIES = "/etc/ssl/certs"
_UNTIL_REBOOT = "/run/fake-kubelet-tests"


class NoEngine(Exception):
    """Containers cannot be run here; the message says why."""


class Engine:
    """Runs podman and buildah on one store, which is kept with its images from run to run."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or cache() / "store"

    @classmethod
    def opened(cls) -> Self:
        """One that is ready; NoEngine where containers cannot be built and run."""
        if os.geteuid() != 0:
            raise NoEngine("containers are built and run by root here")
        if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
            raise NoEngine(f"{', '.join(missing)} not installed; see .ci/packages")
        engine = cls()
        engine.prepare()
        return engine

    @property
    def environment(self) -> dict[str, str]:
        """For whoever calls podman or buildah, so that they are ours."""
        return {
            "CONTAINERS_CONF": str(self._directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._directory / "storage.conf"),
        }

    def prepare(self) -> None:
        """Write their settings: those of a machine that need not let even root raise a limit."""
        self._directory.mkdir(parents=True, exist_ok=True)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        _write(
            self._directory / "containers.conf",
            containers={"default_ulimits": [f"nofile={files}:{files}", "nproc=4096:4096"]},
            # runc, because crun knows no hybrid of cgroups v1 and v2
            engine={"runtime": "runc", "cgroup_manager": "cgroupfs"},
            network={"network_config_dir": str(self._directory / "networks")},
        )
        places = {"graphroot": str(self._directory / "images"), "runroot": _UNTIL_REBOOT}
        _write(self._directory / "storage.conf", storage={"driver": "overlay", **places})

    def podman(self, *words: str, check: bool = True, timeout: float = 60.0) -> str:
        """What a command of podman prints."""
        return run(["podman", *words], env=self.environment, check=check, timeout=timeout).strip()

    def has(self, image: str) -> bool:
        """Whether the store has an image of this name."""
        try:
            self.podman("image", "exists", image)
        except CommandFailed:
            return False
        return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else builds or removes images in this store."""
        with locked(self._directory / "images.lock"):
            yield

    def build(self, context: Path, image: str, **arguments: str) -> str:
        """Build the Dockerfile of a folder, on base images that are there already; the name of the image.

        A name without a tag gets one by content: whatever others build meanwhile, that one stays what it is.
        """
        options = ["--quiet", "--layers", "--format=docker", "--pull=never", "--network=host"]
        options += [f"--build-arg={name}={value}" for name, value in arguments.items()]
        if Path(_AUTHORITIES).is_dir():
            options.append(f"--volume={_AUTHORITIES}:{_AUTHORITIES}:ro")
        with self.alone(), tempfile.NamedTemporaryFile("r") as file:
            words = ["buildah", "build", *options, "--iidfile", file.name, str(context)]
            run(words, env=self.environment, timeout=600)
            built = Path(file.name).read_text().strip().removeprefix("sha256:")
            name = image if ":" in image.rpartition("/")[2] else f"{image}:{built[:12]}"
            self.podman("tag", built, name)
        return name

    def remove(self, *images: str) -> None:
        """Remove names or images, as far as no container has them."""
        with self.alone():
            for image in images:
                self.podman("rmi", image, check=False)

    def names(self, image: str, *filters: str) -> list[str]:
        """The names with a tag of an image, perhaps with more to select them by."""
        words = [f"--filter={word}" for word in (f"reference={image}", *filters)]
        return self.podman("images", "--format={{.Repository}}:{{.Tag}}", *words).split()

    def import_tar(self, tar: Path, image: str, *changes: str) -> None:
        """Make an image of a root file system."""
        words = [word for change in changes for word in ("--change", change)]
        self.podman("import", "--quiet", *words, str(tar), image, timeout=120)

    def size_bytes(self, image: str) -> int:
        """How large all layers of an image are, unpacked."""
        return int(self.podman("image", "inspect", image, "--format", "{{.Size}}"))


def _write(path: Path, **tables: Mapping[str, object]) -> None:
    lines = [line for name, table in tables.items() for line in (f"[{name}]", *_entries(table))]
    # Whole in one step: others may be reading it.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
        draft.write("\n".join(lines) + "\n")
    Path(draft.name).replace(path)


def _entries(table: Mapping[str, object]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in table.items()]  # TOML's strings and lists are JSON's
