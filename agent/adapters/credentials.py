"""Who we are to which API server: kubeconfig or service account → address, TLS and token."""

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent.adapters.certificates.memory import in_memory
from agent.adapters.certificates.store import no_password
from agent.adapters.client_tls import client_context
from agent.adapters.exec_plugin import ask_plugin
from agent.adapters.kubeconfig import Kubeconfig, read_kubeconfig, read_token, with_pair
from agent.adapters.lazy_kubernetes import ConfigException, Configuration, kube_config, load_incluster_config
from agent.adapters.proxies import proxy_for
from agent.ports import StartError

log = logging.getLogger(__name__)

# kubernetes_asyncio's own places, where Kubernetes mounts them
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Credentials:
    """An API server, and what it takes to be heard there."""

    source: str  # the file a person would look into
    configuration: Any  # kubernetes_asyncio's Configuration: address, token, proxy
    tls: ssl.SSLContext | bool  # False: plain HTTP
    headers: tuple[tuple[str, str], ...] = ()  # sent with every request
    files: tuple[Path, ...] = ()  # a change of one of them may change the credentials
    expires_at: datetime | None = None
    digest: str = ""  # two credentials with the same digest are the same

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")


async def load_credentials(kubeconfig: str, pair: Path | None = None) -> Credentials:
    """Read the kubeconfig, or the pod's service account where none is named; a StartError says what is wrong.

    A file with a certificate and its key, once it is there, is used instead of those that the kubeconfig has.
    """
    if not kubeconfig:
        return await asyncio.to_thread(_from_service_account)
    with _explained(kubeconfig):
        config = await asyncio.to_thread(read_kubeconfig, Path(kubeconfig))
        if pair is not None:
            config = await asyncio.to_thread(with_pair, config, pair)
        expires_at = None
        if config.plugin:
            grant = await ask_plugin(config.plugin, cluster=config.cluster, folder=config.folder)
            config, expires_at = replace(config, user=config.user | grant.user), grant.expires_at
        return await _from_kubeconfig(kubeconfig, config, expires_at)


@contextmanager
def _explained(path: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise StartError(
            f"--kubeconfig {path}: certificate, key or certificate-authority does not load: {error}"
        ) from error
    except OSError as error:
        raise StartError(f"cannot read --kubeconfig {path}: {error.strerror}") from error
    except (ConfigException, AttributeError, AssertionError, KeyError, RecursionError, TypeError, ValueError) as error:
        detail = " ".join(str(error).split()) or "no usable cluster, user or context in it"
        raise StartError(f"invalid --kubeconfig {path}: {detail}") from error


async def _from_kubeconfig(path: str, config: Kubeconfig, expires_at: datetime | None) -> Credentials:
    configuration = Configuration()
    await kube_config.load_kube_config_from_dict(config.document, client_configuration=configuration)
    configuration.proxy = proxy_for(str(configuration.host), configuration.proxy)
    names = ("certificate-authority", "client-certificate", "client-key")
    pems = await asyncio.to_thread(lambda: tuple(map(config.content, names)))
    tls = await asyncio.to_thread(_tls, configuration, *pems)
    if tls and config.is_insecure:
        _warn_of_insecure(path, str(configuration.host))
    digest = _digest(configuration, pems, config.headers)
    return Credentials(path, configuration, tls, config.headers, config.files, expires_at, digest)


@lru_cache(maxsize=64)  # said once, however often a file is read
def _warn_of_insecure(path: str, server: str) -> None:
    told = {"kubeconfig": path, "server": server}
    log.warning("insecure-skip-tls-verify is set: whoever answers as the API server gets our credentials", told)


def _from_service_account() -> Credentials:
    configuration, token = Configuration(), _SERVICE_ACCOUNT / "token"
    try:
        load_incluster_config(client_configuration=configuration, try_refresh_token=False)  # type: ignore[no-untyped-call]
        configuration.proxy = proxy_for(str(configuration.host), None)
        configuration.api_key["BearerToken"] = f"Bearer {read_token(token)}"
        authority = Path(configuration.ssl_ca_cert or "")
        pems = (authority.read_bytes(),)
        tls, digest = _tls(configuration, *pems), _digest(configuration, pems, ())
    except ConfigException as error:
        raise StartError(f"no --kubeconfig given and no service account to use instead: {error}") from error
    except (OSError, ValueError) as error:
        raise StartError(f"the service account in {_SERVICE_ACCOUNT} does not load: {error}") from error
    return Credentials("the service account", configuration, tls, files=(token, authority), digest=digest)


def _tls(configuration: Any, authority: bytes, certificate: bytes = b"", key: bytes = b"") -> ssl.SSLContext | bool:
    if not configuration.host.startswith("https://"):
        return False
    context = client_context(authority, verify=configuration.verify_ssl)
    if certificate:
        with in_memory(certificate, key or certificate) as (certificate_path, key_path):
            context.load_cert_chain(certificate_path, key_path, no_password)
    return context


def _digest(configuration: Any, pems: tuple[bytes, ...], headers: tuple[tuple[str, str], ...]) -> str:
    settings = (configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy)
    known = (settings, configuration.api_key.get("BearerToken"), headers, pems)
    return hashlib.sha256(repr(known).encode()).hexdigest()
