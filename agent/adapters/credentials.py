"""Who we are to which API server: kubeconfig or service account → address, TLS and token."""

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agent.adapters.lazy_kubernetes import ConfigException, Configuration, kube_config, load_incluster_config
from agent.ports import StartError


@dataclass(frozen=True, slots=True)
class Credentials:
    """An API server, and what it takes to be heard there."""

    source: str  # the file a person would look into
    configuration: Any  # kubernetes_asyncio's Configuration: address, token, proxy
    tls: ssl.SSLContext | bool  # False: plain HTTP

    @property
    def server(self) -> str:
        """The API server's address, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")


async def load_credentials(kubeconfig: str) -> Credentials:
    """Read the kubeconfig, or the pod's service account where none is named; a StartError says what is wrong."""
    if not kubeconfig:
        return _from_service_account()
    try:
        _check_readable(kubeconfig)
        return await _from_file(kubeconfig)
    except ssl.SSLError as error:
        raise StartError(
            f"--kubeconfig {kubeconfig}: certificate, key or certificate-authority does not load: {error}"
        ) from error
    except OSError as error:
        raise StartError(f"cannot read --kubeconfig {kubeconfig}: {error.strerror}") from error
    except (ConfigException, yaml.YAMLError, AttributeError, AssertionError, KeyError, TypeError, ValueError) as error:
        detail = " ".join(str(error).split()) or "no usable cluster, user or context in it"
        raise StartError(f"invalid --kubeconfig {kubeconfig}: {detail}") from error


def _check_readable(path: str) -> None:
    """The library takes a missing file for an empty one; we do not."""
    with Path(path).open("rb"):
        pass


async def _from_file(path: str) -> Credentials:
    configuration = Configuration()
    # The library writes embedded keys to files. They live in a directory of our own, and only until they are loaded.
    with tempfile.TemporaryDirectory(prefix="fake-kubelet-") as private:
        try:
            await kube_config.load_kube_config(
                config_file=path, client_configuration=configuration, persist_config=False, temp_file_path=private
            )
            if not configuration.host:
                raise ConfigException("its cluster has no server")
            return Credentials(path, configuration, _tls(configuration))
        finally:
            kube_config._temp_files.clear()  # it would hand out the same file again


def _from_service_account() -> Credentials:
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException as error:
        raise StartError(f"no --kubeconfig given and no service account to use instead: {error}") from error
    return Credentials("the service account", configuration, _tls(configuration))


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
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
