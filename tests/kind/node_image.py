"""The image of a kind node, made without a registry and kept: Debian, kind's own files, and what was built here.

`python -m tests.kind.node_image` makes it if needed.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import build
from tests.cluster.build import HERE, Toolset
from tests.cluster.command import run
from tests.container.debian import cache, tarball
from tests.container.engine import Engine

_CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr")
KIND = Toolset(
    title="kind",
    folder=HERE.parent / "kind",
    cache="kind",
    pinned="sigs.k8s.io/kind",
    version_package="sigs.k8s.io/kind/pkg/cmd/kind/version",
    minutes=3,
    programs=("kind", *_CONTAINERD),
    own=("pause",),
)
_NODE = KIND.folder / "node"
_ROOTFS = "localhost/kind-rootfs"
_CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_KUBE = ("kubeadm", "kubectl", "kubelet")


def node_image(engine: Engine, binaries: Path) -> str:
    """The name of the image; it is made at the first call, in about a minute."""
    version = build.KUBERNETES.version
    recipe = [Path(__file__), *sorted(_NODE.iterdir()), KIND.folder / "go.sum", build.KUBERNETES.folder / "go.sum"]
    key = hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()[:12]
    image = f"localhost/kind-node:{version}-{key}"
    if not engine.has(image):
        for older in engine.podman("images", "--quiet", "localhost/kind-node").split():
            engine.podman("rmi", "--force", older)
        engine.import_tar(tarball("bookworm", (_NODE / "packages").read_text().split()), _ROOTFS)
        folder = cache() / f"kind-node-{key}"
        shutil.rmtree(folder, ignore_errors=True)
        _fill(folder, engine, binaries)
        engine.build(folder, image)
        shutil.rmtree(folder)
    return image


def _fill(folder: Path, engine: Engine, binaries: Path) -> None:
    """Everything that the Dockerfile copies."""
    tools = build.built(KIND)  # which also brings the source of kind here
    shutil.copytree(_NODE, folder)
    source = run(["go", "-C", str(KIND.folder), "list", "-m", "-f", "{{.Dir}}", KIND.pinned]).strip()
    shutil.copytree(Path(source) / "images/base/files", folder / "files", copy_function=shutil.copyfile)
    needed = dict(images(binaries))
    _adapt(folder / "files/etc/containerd/config.toml", needed["pause"])
    (folder / "bin").mkdir()
    (folder / "images").mkdir()
    (folder / "version").write_text(build.KUBERNETES.version)
    for program in (*(binaries / name for name in _KUBE), *(tools / name for name in _CONTAINERD)):
        shutil.copy(program, folder / "bin")
    for name, image in needed.items():
        program = (tools if name == "pause" else binaries) / name
        _save(engine, program, image, folder / "images" / f"{name}.tar")


def images(binaries: Path) -> Iterator[tuple[str, str]]:
    """The name of the image that kubeadm will ask for, by program."""
    version = ("--kubernetes-version", build.KUBERNETES.version)
    for image in run([str(binaries / "kubeadm"), "config", "images", "list", *version]).split():
        name = image.rpartition("/")[2].partition(":")[0]
        if name in {*_CONTROL_PLANE, "etcd", "pause"}:
            yield name, image


def _adapt(config: Path, pause: str) -> None:
    """Containerd with the pause image that we have, and without the rights that root may lack in a container."""
    text = re.sub("sandbox_image = .*", f'sandbox_image = "{pause}"', config.read_text())
    text = text.replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true")
    config.write_text(re.sub(r".*base_runtime_spec.*\n", "", text))


def _save(engine: Engine, program: Path, image: str, archive: Path) -> None:
    """An image with nothing but one static program, as an archive."""
    folder = archive.with_suffix("")
    folder.mkdir()
    shutil.copy(program, folder)
    path = f"/usr/local/bin/{program.name}"
    lines = ("FROM scratch", f"COPY {program.name} {path}", "ENV PATH=/usr/local/bin", f'ENTRYPOINT ["{path}"]')
    (folder / "Dockerfile").write_text("\n".join(lines))
    engine.build(folder, image)
    engine.podman("save", "--quiet", "--format=docker-archive", "--output", str(archive), image, timeout=120)
    engine.remove(image)
    shutil.rmtree(folder)


if __name__ == "__main__":
    print(node_image(Engine.opened(), build.binaries()))
