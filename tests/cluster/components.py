"""The command lines of the control plane's components."""

from dataclasses import dataclass
from pathlib import Path

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],  # one line per request; a watch has a second one, when it ends
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where one control plane keeps its files and listens."""

    directory: Path
    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int

    @property
    def pki(self) -> Path:
        """kubeadm's certificates directory."""
        return self.directory / "pki"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, one JSON object per line."""
        return self.directory / "audit.log"

    @property
    def audit_policy(self) -> Path:
        """What the audit log tells."""
        return self.directory / "audit-policy.yaml"


Flags = dict[str, object]


def command_lines(layout: Layout) -> dict[str, list[str]]:
    """Each component's flags, by its name, in the order in which they start."""
    return {
        "etcd": _words(_etcd(layout)),
        "kube-apiserver": _words(_apiserver(layout)),
        "kube-controller-manager": _words(_controller_manager(layout)),
        "kube-scheduler": _words(_client(layout, "scheduler") | {"secure-port": layout.scheduler}),
    }


def _words(flags: Flags) -> list[str]:
    return [f"--{name}={value}" for name, value in flags.items()]


def _etcd(layout: Layout) -> Flags:
    client, peer = f"http://127.0.0.1:{layout.etcd}", f"http://127.0.0.1:{layout.etcd_peer}"
    return {
        "data-dir": layout.directory / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }


def _apiserver(layout: Layout) -> Flags:
    return {
        "etcd-servers": f"http://127.0.0.1:{layout.etcd}",
        "advertise-address": "127.0.0.1",
        "bind-address": "127.0.0.1",
        "secure-port": layout.apiserver,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "allow-privileged": "true",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-cluster-ip-range": "10.96.0.0/16",
        "kubelet-preferred-address-types": "InternalIP,Hostname",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "audit-policy-file": layout.audit_policy,
        "audit-log-path": layout.audit_log,
    } | _apiserver_files(layout)


def _apiserver_files(layout: Layout) -> Flags:
    files = {
        "tls-cert-file": "apiserver.crt",
        "tls-private-key-file": "apiserver.key",
        "client-ca-file": "ca.crt",
        "service-account-key-file": "sa.pub",
        "service-account-signing-key-file": "sa.key",
        "kubelet-client-certificate": "apiserver-kubelet-client.crt",
        "kubelet-client-key": "apiserver-kubelet-client.key",
        "requestheader-client-ca-file": "front-proxy-ca.crt",
        "proxy-client-cert-file": "front-proxy-client.crt",
        "proxy-client-key-file": "front-proxy-client.key",
    }
    return {flag: layout.pki / name for flag, name in files.items()}


def _controller_manager(layout: Layout) -> Flags:
    return _client(layout, "controller-manager") | {
        "secure-port": layout.controller_manager,
        "controllers": "*,bootstrapsigner,tokencleaner",
        "use-service-account-credentials": "true",
        "allocate-node-cidrs": "true",
        "cluster-cidr": "10.244.0.0/16",
        "flex-volume-plugin-dir": layout.directory / "flex-volume",  # or it makes one below /usr
        "root-ca-file": layout.pki / "ca.crt",
        "cluster-signing-cert-file": layout.pki / "ca.crt",
        "cluster-signing-key-file": layout.pki / "ca.key",
        "service-account-private-key-file": layout.pki / "sa.key",
    }


def _client(layout: Layout, name: str) -> Flags:
    """What the two clients of the API server have in common."""
    kubeconfig = layout.directory / f"{name}.conf"
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "leader-elect": "false",
    }
