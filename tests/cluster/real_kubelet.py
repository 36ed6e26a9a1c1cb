"""The real kubelet on a container runtime that runs nothing: the peer that everything is compared with."""

import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster import build
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

# What a kubelet changes outside its --root-dir, whatever its settings, and the value that it wants: where it is there
# already, nothing is written, and a kubelet that ends in the middle of it cannot leave an empty file to the next.
# kubelet v1.36: container_manager_linux.go, setupKernelTunables
TUNABLES = {
    Path("/proc/sys/kernel/keys/root_maxbytes"): 25_000_000,
    Path("/proc/sys/kernel/keys/root_maxkeys"): 1_000_000,
    Path("/proc/sys/kernel/panic"): 10,
    Path("/proc/sys/kernel/panic_on_oops"): 1,
    Path("/proc/sys/vm/overcommit_memory"): 1,
    Path("/proc/sys/vm/panic_on_oom"): 0,
}
# kubelet v1.36: deviceplugin/v1beta1/constants.go, whose sockets it removes; kuberuntime/legacy.go
_DIRECTORIES = (Path("/var/lib/kubelet"), Path("/var/log/containers"))


# A kubelet has 6 inotify instances, and ends if it gets none (cAdvisor, whatever its settings); a control plane has 15.
# By default Linux gives 128 to one user, so a few suites on one machine may have to wait for each other: with some
# distance, because those that have just been started have not taken theirs yet.
_INOTIFY_DISTANCE = 30


def wait_for_inotify() -> None:
    """Return when there is room for the inotify instances of some more kubelets."""
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    eventually(lambda: _inotify_instances() + _INOTIFY_DISTANCE <= limit, every=0.5)


def _inotify_instances() -> int:
    count = 0
    for folder in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):  # a process may end at any time
            count += sum(str(file.readlink()) == "anon_inode:inotify" for file in folder.iterdir())
    return count


class RealKubelet:
    """One kubelet with its fakecri, as root, all its files in one directory.

    Both live in a mount namespace of their own, where copies stand in for what a kubelet would change on the machine:
    it may itself be a node. The kubelet's mounts are gone with the namespace, however the two processes end.

    The directory's path should be short: sockets live in it, and their paths end at 107 characters.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        node_name: str,
        directory: Path,
        *,
        flags: Sequence[str] = (),
        config: Mapping[str, Any] | None = None,
        flags_only: bool = False,
        kubeconfig: Path | None = None,
    ) -> None:
        self.node_name, self.directory = node_name, directory
        self.port, self.healthz_port = free_ports(2)
        self._control_plane, self._kubeconfig = control_plane, kubeconfig
        self._flags, self._config, self._flags_only = list(flags), dict(config or {}), flags_only
        self.fakecri = Process("fakecri", self._in_new_namespace(), log=directory / "fakecri.log")
        self.process = Process("kubelet", [], log=directory / "kubelet.log")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The kubelet's own process id."""
        return self.process.pid

    @property
    def root_dir(self) -> Path:
        """The kubelet's --root-dir, whose filesystem is nodefs."""
        return self.directory / "root"

    @property
    def arguments(self) -> list[str]:
        """The command line after `kubelet`."""
        return [*self._own_flags(), *self._flags]

    @property
    def our_arguments(self) -> list[str]:
        """The command line of a fake-kubelet with the same settings: without a file, its defaults are safer ones."""
        return [*self.arguments, *(["--legacy-flag-defaults"] if self._flags_only else [])]

    def prepare(self) -> None:
        """Everything but the kubelet itself: files, and the runtime it needs."""
        build.require(self._control_plane.bin, *build.KUBELET)
        self.root_dir.mkdir(parents=True, exist_ok=True)
        for original in _DIRECTORIES:
            original.mkdir(parents=True, exist_ok=True)
            self._stand_in(original).mkdir(exist_ok=True)
        for original, value in TUNABLES.items():
            self._stand_in(original).write_text(f"{value}\n")
        kubeconfig = self._kubeconfig or self._control_plane.node_kubeconfig(self.node_name)
        shutil.copyfile(kubeconfig, self.directory / "kubeconfig")
        self._config_file.write_text(yaml.safe_dump(self._configuration()))
        self.fakecri.start()
        eventually(self._socket.exists, every=0.01)

    def start(self) -> None:
        """Start the kubelet, with its runtime if that is not running yet; returns at once."""
        if not self.fakecri.running:
            self.prepare()
        wait_for_inotify()
        self.process = Process("kubelet", self._in_namespace_of_fakecri(), log=self.process.log)
        self.process.start()

    def stop(self) -> int | None:
        """Stop the kubelet, then its runtime; the kubelet's exit code."""
        code = self.process.stop()
        self.fakecri.stop()
        self._socket.unlink(missing_ok=True)
        return code

    def log_text(self) -> str:
        """What the kubelet has logged."""
        return self.process.log_text()

    @property
    def _socket(self) -> Path:
        return self.directory / "cri.sock"

    @property
    def _config_file(self) -> Path:
        return self.directory / "config.yaml"

    def _stand_in(self, original: Path) -> Path:
        return self.directory / str(original).strip("/").replace("/", ".")

    def _in_new_namespace(self) -> list[str]:
        """fakecri, after everything is mounted that the kubelet should see."""
        mounts = [["mount", "--bind", str(self._stand_in(path)), str(path)] for path in (*TUNABLES, *_DIRECTORIES)]
        fakecri = [str(self._control_plane.bin / "fakecri"), str(self._socket), str(self.directory)]
        script = " && ".join(shlex.join(words) for words in [*mounts, ["exec", *fakecri]])
        return ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script]

    def _in_namespace_of_fakecri(self) -> list[str]:
        kubelet = [str(self._control_plane.bin / "kubelet"), *self.arguments]
        # Where a runtime tells no log path, a kubelet that removes a container removes `*` in its working directory:
        # in / the first of these is the link /bin. So it works where there is nothing.
        nowhere = self.directory / "nowhere"
        nowhere.mkdir(exist_ok=True)
        return ["nsenter", f"--mount=/proc/{self.fakecri.pid}/ns/mnt", f"--wdns={nowhere}", "--", *kubelet]

    def _own_flags(self) -> list[str]:
        return [
            *(self._needed_flags() if self._flags_only else [f"--config={self._config_file}"]),
            f"--kubeconfig={self.directory / 'kubeconfig'}",
            f"--hostname-override={self.node_name}",
            f"--root-dir={self.root_dir}",
            f"--cert-dir={self.directory / 'pki'}",
        ]

    def _configuration(self) -> dict[str, Any]:
        """What kubeadm would give it, and what a kubelet needs that may not manage cgroups."""
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"x509": {"clientCAFile": str(self._control_plane.ca_file)}},
            "address": "127.0.0.1",
            "port": self.port,
            "healthzPort": self.healthz_port,
            "containerRuntimeEndpoint": f"unix://{self._socket}",
            "podLogsDir": str(self.directory / "pod-logs"),
            "volumePluginDir": str(self.directory / "volume-plugins"),
            "failCgroupV1": False,
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
        } | self._config

    def _needed_flags(self) -> list[str]:
        """The same as flags, for a kubelet without a config file."""
        return [
            "--address=127.0.0.1",
            f"--port={self.port}",
            f"--healthz-port={self.healthz_port}",
            "--read-only-port=0",
            f"--container-runtime-endpoint=unix://{self._socket}",
            f"--volume-plugin-dir={self.directory / 'volume-plugins'}",
            "--fail-cgroupv1=false",
            "--cgroups-per-qos=false",
            "--enforce-node-allocatable=",
            "--fail-swap-on=false",
            "--make-iptables-util-chains=false",
        ]
