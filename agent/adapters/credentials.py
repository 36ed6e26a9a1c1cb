"""Who we are to which API server: kubeconfig or service account → address, TLS and token."""

import asyncio
import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from agent.adapters.certificates.store import no_password
from agent.adapters.exec_plugin import Grant, ask_plugin
from agent.adapters.kubeconfig import Kubeconfig, read_kubeconfig, read_token, with_pair
from agent.adapters.lazy_kubernetes import ConfigException, Configuration, kube_config, load_incluster_config
from agent.adapters.proxies import proxy_for
from agent.ports import StartError

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
        grant = Grant({}, None)
        if config.plugin:
            grant = await ask_plugin(config.plugin, cluster=config.cluster, folder=config.folder)
        return await _from_kubeconfig(kubeconfig, config, grant)


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
    except (ConfigException, AttributeError, AssertionError, KeyError, TypeError, ValueError) as error:
        detail = " ".join(str(error).split()) or "no usable cluster, user or context in it"
        raise StartError(f"invalid --kubeconfig {path}: {detail}") from error


async def _from_kubeconfig(path: str, config: Kubeconfig, grant: Grant) -> Credentials:
    configuration = Configuration()
    # The library writes embedded keys to files. They live in a directory of our own, and only until they are loaded.
    with tempfile.TemporaryDirectory(prefix="fake-kubelet-") as private:
        try:
            await kube_config.load_kube_config_from_dict(
                config.document(grant.user), client_configuration=configuration, temp_file_path=private
            )
            configuration.proxy = proxy_for(str(configuration.host), configuration.proxy)
            tls, digest = _tls(configuration), _digest(configuration, config.headers)
        finally:
            kube_config._temp_files.clear()  # it would hand out the same file again
    return Credentials(path, configuration, tls, config.headers, config.files, grant.expires_at, digest)


def _from_service_account() -> Credentials:
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration, try_refresh_token=False)  # type: ignore[no-untyped-call]
        configuration.proxy = proxy_for(str(configuration.host), None)
        files = (_SERVICE_ACCOUNT / "token", Path(configuration.ssl_ca_cert or ""))
        configuration.api_key["BearerToken"] = f"Bearer {read_token(files[0])}"
        tls, digest = _tls(configuration), _digest(configuration, ())
    except ConfigException as error:
        raise StartError(f"no --kubeconfig given and no service account to use instead: {error}") from error
    except OSError as error:
        raise StartError(f"the service account's {files[1]} does not load: {error}") from error
    return Credentials("the service account", configuration, tls, files=files, digest=digest)


def _tls(configuration: Any) -> ssl.SSLContext | bool:
    if not configuration.host.startswith("https://"):
        return False
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Python 3.13 asks more of a CA certificate than Go does, and than many clusters' CA fulfils.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file, no_password)
    return context


def _digest(configuration: Any, headers: tuple[tuple[str, str], ...]) -> str:
    digest = hashlib.sha256()
    for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        digest.update(Path(path).read_bytes() if path and os.access(path, os.R_OK) else b"\0")
    settings = (configuration.host, configuration.verify_ssl, configuration.tls_server_name, configuration.proxy)
    digest.update(repr((settings, configuration.api_key.get("BearerToken"), headers)).encode())
    return digest.hexdigest()
