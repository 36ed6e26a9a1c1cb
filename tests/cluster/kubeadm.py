"""Certificates, kubeconfigs, bootstrap tokens and RBAC of a cluster, made by kubeadm's phases as kind does."""

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.command import run

BOOTSTRAP_TOKEN = "abcdef.0123456789abcdef"  # kind's and kubeadm's documentation use it too

# kubeadm refuses a loopback address here, so it gets one from the documentation range, and 127.0.0.1 as a further name.
_ADVERTISED = "192.0.2.1"


class Kubeadm:
    """kubeadm, for the cluster that lives in one directory."""

    def __init__(self, binary: Path, directory: Path, *, port: int) -> None:
        self._binary, self._directory, self._port = binary, directory, port

    @property
    def pki(self) -> Path:
        """The directory of the certificates and keys."""
        return self._directory / "pki"

    def kubeconfig(self, name: str) -> Path:
        """The file of a kubeconfig that this cluster has."""
        return self._directory / f"{name}.conf"

    def prepare(self) -> None:
        """Write everything that has to exist before the first component starts."""
        self._config.write_text(yaml.safe_dump_all(self._documents()))
        self._run("init", "phase", "certs", "all", "--config", str(self._config))
        for name in ("admin", "super-admin", "controller-manager", "scheduler"):
            where = ("--kubeconfig-dir", str(self._directory))
            self._run("init", "phase", "kubeconfig", name, "--config", str(self._config), *where)
            self._on_loopback(self.kubeconfig(name))
        self._unpack_admin()
        self._write_bootstrap_kubeconfig()

    def bootstrap(self) -> None:
        """Create the bootstrap token, cluster-info and the roles of joining nodes in the running cluster."""
        access = ("--config", str(self._config), "--kubeconfig", str(self.kubeconfig("super-admin")))
        self._run("init", "phase", "upload-config", "kubeadm", *access)
        self._run("init", "phase", "bootstrap-token", *access, "--skip-token-print")

    def user_kubeconfig(self, user: str, *groups: str) -> str:
        """A kubeconfig with a fresh client certificate for any user."""
        organizations = [word for group in groups for word in ("--org", group)]
        return self._run("kubeconfig", "user", "--config", str(self._config), "--client-name", user, *organizations)

    @property
    def _config(self) -> Path:
        return self._directory / "kubeadm.yaml"

    def _run(self, *words: str) -> str:
        return run([str(self._binary), *words])

    def _documents(self) -> list[dict[str, Any]]:
        api = "kubeadm.k8s.io/v1beta4"
        token = {
            "token": BOOTSTRAP_TOKEN,
            "ttl": "0s",
            "usages": ["signing", "authentication"],
            "groups": ["system:bootstrappers:kubeadm:default-node-token"],
        }
        init = {
            "localAPIEndpoint": {"advertiseAddress": _ADVERTISED, "bindPort": self._port},
            "nodeRegistration": {"name": "control-plane", "criSocket": "unix:///none.sock"},
            "bootstrapTokens": [token],
        }
        cluster = {
            "kubernetesVersion": self._run("version", "--output=short").strip(),  # or it asks the internet
            "controlPlaneEndpoint": f"127.0.0.1:{self._port}",
            "certificatesDir": str(self.pki),
            "encryptionAlgorithm": "ECDSA-P256",  # an RSA key costs a tenth of a second, and sometimes a whole one
            "apiServer": {"certSANs": ["127.0.0.1", "localhost"]},
            "networking": {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/16"},
        }
        return [
            {"apiVersion": api, "kind": "InitConfiguration", **init},
            {"apiVersion": api, "kind": "ClusterConfiguration", **cluster},
        ]

    def _on_loopback(self, kubeconfig: Path) -> None:
        kubeconfig.write_text(kubeconfig.read_text().replace(_ADVERTISED, "127.0.0.1"))

    def _unpack_admin(self) -> None:
        """The administrator's certificate and key as PEM files, for clients that want files."""
        user = yaml.safe_load(self.kubeconfig("admin").read_text())["users"][0]["user"]
        for suffix, field in (("crt", "client-certificate-data"), ("key", "client-key-data")):
            (self.pki / f"admin.{suffix}").write_bytes(base64.b64decode(user[field]))

    def _write_bootstrap_kubeconfig(self) -> None:
        """What `kubeadm join` writes as bootstrap-kubelet.conf."""
        config = yaml.safe_load(self.kubeconfig("admin").read_text())
        user = {"name": "tls-bootstrap-token-user", "user": {"token": BOOTSTRAP_TOKEN}}
        context = {"cluster": config["clusters"][0]["name"], "user": user["name"]}
        config |= {"users": [user], "contexts": [{"name": "bootstrap", "context": context}]}
        self.kubeconfig("bootstrap-kubelet").write_text(yaml.safe_dump(config | {"current-context": "bootstrap"}))
