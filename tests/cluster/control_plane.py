"""A real control plane on loopback, with kubeadm's PKI and RBAC."""

import hashlib
import http.client
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import yaml

from agent.core.x509 import read_certificates
from tests.cluster import build
from tests.cluster.api import NAMESPACES, Api, Identity, unchecked_tls
from tests.cluster.command import run
from tests.cluster.components import AUDIT_POLICY, Layout, command_lines
from tests.cluster.kubeadm import Kubeadm
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

_GRACE_SECONDS = 2.0  # an API server with watchers, and an etcd with an API server, would take far longer
_CLUSTER_WIDE = {"node", "namespace", "csinode", "clusterrole", "apiservice"}
_GROUPS = {  # of kinds that are not of the core
    "apiservice": "apiregistration.k8s.io",
    "clusterrole": "rbac.authorization.k8s.io",
    "csinode": "storage.k8s.io",
    "deployment": "apps",
    "lease": "coordination.k8s.io",
}


class ControlPlane:
    """etcd, API server, controller-manager and scheduler in one directory, on ports of their own."""

    def __init__(
        self, directory: Path, *, binaries: Path, extra_args: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.directory, self.bin = directory, binaries
        self._extra_args = extra_args or {}
        self._components: dict[str, Process] = {}
        self._layout: Layout | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def layout(self) -> Layout:
        """Ports and files; they stay the same when a component is stopped and started again."""
        if self._layout is None:
            etcd, peer, apiserver, manager, scheduler = free_ports(5)
            self._layout = Layout(
                directory=self.directory,
                etcd=etcd,
                etcd_peer=peer,
                apiserver=apiserver,
                controller_manager=manager,
                scheduler=scheduler,
            )
        return self._layout

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.layout.apiserver}"

    @property
    def endpoint(self) -> str:
        """The same as host and port, as `join` takes it."""
        return self.url.removeprefix("https://")

    @property
    def ca_file(self) -> Path:
        """The certificate of the cluster's authority."""
        return self.layout.pki / "ca.crt"

    @property
    def pin(self) -> str:
        """The hash of the authority's public key, as kubeadm prints it."""
        authority = read_certificates(self.ca_file.read_text())[0]
        return f"sha256:{hashlib.sha256(authority.public_key).hexdigest()}"

    @cached_property
    def api(self) -> Api:
        """The API server, asked by the administrator."""
        admin = Identity("admin", (self.admin_cert, self.admin_key), authority=self.ca_file)
        return Api(self.layout.apiserver, admin)

    @property
    def admin_kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._kubeadm.kubeconfig("admin")

    @property
    def admin_cert(self) -> Path:
        """The administrator's certificate, as PEM."""
        return self.layout.pki / "admin.crt"

    @property
    def admin_key(self) -> Path:
        """The administrator's key, as PEM."""
        return self.layout.pki / "admin.key"

    @property
    def bootstrap_kubeconfig(self) -> Path:
        """A kubeconfig with nothing but a bootstrap token, as a joining node has it."""
        return self._kubeadm.kubeconfig("bootstrap-kubelet")

    @property
    def kubectl_path(self) -> Path:
        """The kubectl of the same version."""
        return self.bin / "kubectl"

    @property
    def audit_log(self) -> Path:
        """Every request at Metadata level, one JSON object per line."""
        return self.layout.audit_log

    def start(self) -> None:
        """Bring everything up; NoControlPlane if binaries are missing, StartFailed if one does not start."""
        build.require(self.bin, *build.CONTROL_PLANE)
        try:
            self._prepare()
            self.start_component("etcd")
            self.start_component("kube-apiserver")
            self._grant_admin()
            # Only now: they exit if the API server or its RBAC are not there yet.
            self._components["kube-controller-manager"].start()
            self._components["kube-scheduler"].start()
            self._kubeadm.bootstrap()
            for name in ("kube-controller-manager", "kube-scheduler"):
                self._wait_until_healthy(name)
            # Healthy is not complete: it ends if the API server goes away while its controllers are being made.
            eventually(lambda: self.api.get(f"{NAMESPACES}/default/serviceaccounts/default"))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop everything, last started first: an API server without etcd would not end."""
        for component in reversed(self._components.values()):
            component.stop(within=_GRACE_SECONDS)
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)  # 128 MB that pytest would keep for three runs

    def start_component(self, name: str) -> None:
        """Start one component, on the port it had before, and wait until it is healthy."""
        self._components[name].start()
        self._wait_until_healthy(name)

    def stop_component(self, name: str) -> None:
        """Stop one component, for tests of what happens then."""
        self._components[name].stop(within=_GRACE_SECONDS)

    def kubectl(self, *args: str, input: str | None = None, check: bool = True) -> str:  # noqa: A002 - as subprocess
        """What kubectl prints for the administrator."""
        # Its cache and preferences would otherwise be those of the person who runs the tests.
        env = {
            "KUBECONFIG": str(self.admin_kubeconfig),
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
            "KUBERC": "off",
        }
        return run([str(self.kubectl_path), *args], stdin=input, env=env, check=check)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """One object, without what the API server notes for itself, as kubectl shows it; Refused if there is none."""
        base = f"/apis/{_GROUPS[kind]}/v1" if kind in _GROUPS else "/api/v1"
        scope = "" if kind in _CLUSTER_WIDE else f"/namespaces/{namespace}"
        found = self.api.get(f"{base}{scope}/{kind}s/{name}")
        found["metadata"].pop("managedFields", None)
        return found

    def node_kubeconfig(self, name: str) -> Path:
        """A kubeconfig as `system:node:NAME`, with a certificate signed by the cluster's authority."""
        return self.user_kubeconfig(name, f"system:node:{name}", "system:nodes")

    def user_kubeconfig(self, name: str, user: str, *groups: str) -> Path:
        """A kubeconfig of this file name as any user."""
        path = self.directory / "nodes" / f"{name}.conf"
        path.parent.mkdir(exist_ok=True)
        path.write_text(self._kubeadm.user_kubeconfig(user, *groups))
        path.chmod(0o600)
        return path

    def log_text(self, name: str) -> str:
        """What a component has logged."""
        return self._components[name].log_text()

    @property
    def _kubeadm(self) -> Kubeadm:
        return Kubeadm(self.bin / "kubeadm", self.directory, port=self.layout.apiserver)

    def _prepare(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.layout.audit_policy.write_text(yaml.safe_dump(AUDIT_POLICY))
        self._kubeadm.prepare()
        for name, flags in command_lines(self.layout).items():
            argv = [str(self.bin / name), *flags, *self._extra_args.get(name, ())]
            self._components[name] = Process(name, argv, log=self.directory / f"{name}.log")

    def _grant_admin(self) -> None:
        """Do as `kubeadm init` does, which no phase of it does alone: admin.conf is nobody without this binding."""
        group = "kubeadm:cluster-admins"
        words = ("create", "clusterrolebinding", group, "--clusterrole=cluster-admin", f"--group={group}")
        self.kubectl("--kubeconfig", str(self._kubeadm.kubeconfig("super-admin")), *words)

    def _wait_until_healthy(self, name: str, within: float = 120.0) -> None:
        component = self._components[name]
        try:
            eventually(lambda: not component.running or self._is_healthy(name), within=within, every=0.05)
        except AssertionError as error:
            raise component.failure(f"is not healthy after {within} s") from error
        if not component.running:
            raise component.failure("ended at once")

    def _is_healthy(self, name: str) -> bool:
        port, path = {
            "etcd": (self.layout.etcd, "/health"),
            "kube-apiserver": (self.layout.apiserver, "/readyz"),
            "kube-controller-manager": (self.layout.controller_manager, "/healthz"),
            "kube-scheduler": (self.layout.scheduler, "/healthz"),
        }[name]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        if name != "etcd":
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unchecked_tls())
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        finally:
            connection.close()
