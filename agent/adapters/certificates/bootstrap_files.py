"""The files of a TLS bootstrap: kubeconfigs with a client certificate, and the key that waits for one."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import yaml

from agent.adapters.certificates.files import write_whole
from agent.adapters.certificates.store import PemStore
from agent.adapters.credentials import Credentials, load_credentials
from agent.adapters.go_yaml import load_private
from agent.adapters.kubeconfig import Kubeconfig, read_kubeconfig
from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.config import Config
from agent.core.csr import is_of_another_node, node_of
from agent.core.model import Object
from agent.core.x509 import Certificate, read_certificates
from agent.ports import KeyPair, StartError

log = logging.getLogger(__name__)

_PENDING_KEY = "kubelet-client.key.tmp"
_OF_JOIN: Object = {"name": "fake-kubelet.dev/join", "extension": {"removeAfterBootstrap": True}}
_SAME_CLUSTER = ("server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
_BEYOND_KUBELET = ("tls-server-name", "proxy-url")  # a kubelet drops these, and cannot connect then


async def is_still_valid(kubeconfig: Path, now: datetime, *, node_name: str) -> bool:
    """Whether a kubeconfig has a client certificate that has not expired; as in kubelet, any issuer will do.

    Better than kubelet, the certificate of another node is not valid: the API server would refuse it for ever.
    """
    try:
        if not await asyncio.to_thread(kubeconfig.exists):
            return False
    except OSError as error:
        raise StartError(f"error reading existing bootstrap kubeconfig {kubeconfig}: {error.strerror}") from error
    subject = f"existing bootstrap client config read from {kubeconfig}"
    try:
        pem = (await load_credentials(str(kubeconfig))).certificate_pem
        chain = read_certificates(pem) if pem else ()
    except (StartError, OSError, ValueError) as error:
        log.error(f"unable to load TLS configuration from {subject}", {"err": error})
        return False
    fault = _fault(chain, now, node_name)
    if fault:
        log.error(f"{subject[0].upper()}{subject[1:]} is of no use", {"err": fault})
    return not fault


def _fault(chain: Sequence[Certificate], now: datetime, node_name: str) -> str:
    if not chain:
        return "unable to read TLS certificates"
    if expired_at := [certificate.not_after for certificate in chain if certificate.is_over(now)]:
        return f"part of the client certificate is expired: {expired_at[0]}"
    is_foreign = is_of_another_node(chain[0], node_name)
    return f"the client certificate is that of {chain[0].common_name}" if is_foreign else ""


def check_node_name(credentials: Credentials, config: Config) -> None:
    """Raise StartError if credentials are those of another node: the API server would refuse us.

    A bootstrap replaces them. A certificate that cannot be read here is the API server's to judge.
    """
    if config.process.certificates.bootstrap_kubeconfig or not credentials.certificate_pem:
        return
    node_name = config.node.node_name
    with suppress(ValueError):
        certificate = read_certificates(credentials.certificate_pem)[0]
        if is_of_another_node(certificate, node_name):
            owner = node_of(certificate)
            raise StartError(
                f"the credentials of {credentials.source} are for node {owner}, and this is node {node_name}: "
                f"use --hostname-override={owner}"
            )


def client_pair(kubeconfig: Path) -> KeyPair | None:
    """Return the client certificate and key of a kubeconfig; None if its user has none."""
    config = _read(kubeconfig)
    try:
        pems = [config.content(name).decode("ascii", "replace") for name in ("client-certificate", "client-key")]
    except ConfigException as error:
        raise StartError(f"unable to load kubeconfig {kubeconfig}: {error}") from error
    return KeyPair(*pems) if all(pems) else None


def client_files(kubeconfig: Path) -> tuple[Path, Path] | None:
    """Return the files that a kubeconfig names for its client certificate and key; None if it names none."""
    user = _read(kubeconfig).user
    if user.get("client-certificate") and user.get("client-key"):
        return Path(user["client-certificate"]), Path(user["client-key"])
    return None


def write_kubeconfig(kubeconfig: Path, *, bootstrap: Path, pem: Path) -> None:
    """Write a kubeconfig for the cluster of the bootstrap kubeconfig, with the certificate and key of a PEM file."""
    cluster = _read(bootstrap).cluster
    kept = {key: cluster[key] for key in (*_SAME_CLUSTER, *_BEYOND_KUBELET) if cluster.get(key)}
    user = {"client-certificate": str(pem), "client-key": str(pem)}
    write_whole(kubeconfig, yaml.safe_dump(kubeconfig_document(kept, user)))


def kubeconfig_document(cluster: Object, user: Object) -> Object:
    """Return a kubeconfig with one cluster and one user, under the names that kubelet gives them."""
    context = {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": user}],
        "contexts": [{"name": "default-context", "context": context}],
        "current-context": "default-context",
    }


def bootstrap_document(cluster: Object, user: Object) -> Object:
    """Return the bootstrap kubeconfig of `join`, which is removed after the bootstrap, as kubeadm removes its own."""
    return kubeconfig_document(cluster, user) | {"extensions": [_OF_JOIN]}


def remove_after_join(bootstrap: Path) -> None:
    """Remove the bootstrap kubeconfig if `join` wrote it; like kubelet, keep one that a person wrote."""
    try:
        document = load_private(bootstrap.read_text("utf-8")) if bootstrap.is_file() else None
        if isinstance(document, dict) and _OF_JOIN in (document.get("extensions") or ()):
            bootstrap.unlink()
            log.info("Removed the bootstrap kubeconfig, its token has served", {"path": str(bootstrap)})
    except (ConfigException, OSError, TypeError, ValueError) as error:
        log.warning("Unable to remove the bootstrap kubeconfig", {"path": str(bootstrap), "err": error})


class BootstrapFiles:
    """The key of a bootstrap that is not finished, and the kubeconfig that a finished one leaves."""

    def __init__(self, *, folder: Path, store: PemStore, kubeconfig: Path, bootstrap: Path) -> None:
        self._store = store
        self._kubeconfig = kubeconfig
        self._bootstrap = bootstrap
        self._pending_key = folder / _PENDING_KEY

    async def key(self) -> str:
        """Return the key of the stored certificate, else the one that waits for its certificate, else nothing."""
        return await self._store.key() or await asyncio.to_thread(self._read_pending_key)

    async def keep_key(self, key_pem: str) -> None:
        """Keep a key until its certificate is stored."""
        await asyncio.to_thread(write_whole, self._pending_key, key_pem)

    async def finish(self) -> None:
        """Remove that key, and write the kubeconfig that uses the certificate."""
        await asyncio.to_thread(self._finish)

    def _read_pending_key(self) -> str:
        return self._pending_key.read_text() if self._pending_key.exists() else ""

    def _finish(self) -> None:
        self._pending_key.unlink(missing_ok=True)
        write_kubeconfig(self._kubeconfig, bootstrap=self._bootstrap, pem=self._store.path)
        remove_after_join(self._bootstrap)


def _read(kubeconfig: Path) -> Kubeconfig:
    try:
        return read_kubeconfig(kubeconfig)
    except (ConfigException, OSError, AttributeError, TypeError, ValueError) as error:
        raise StartError(f"unable to load kubeconfig {kubeconfig}: {error}") from error
