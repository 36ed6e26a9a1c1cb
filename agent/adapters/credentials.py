"""Credentials for the API server: load them from a kubeconfig or a service account, and again when they change."""

import asyncio
import hashlib
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from agent.adapters.exec_plugin import run_plugin
from agent.adapters.kubeconfig import PEM_NAMES, Kubeconfig, read_kubeconfig, read_token, with_pair
from agent.adapters.lazy_kubernetes import ConfigException, Configuration, kube_config, load_incluster_config
from agent.adapters.tls import client_context, in_memory, no_password
from agent.adapters.transport import proxy_for
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

# kubernetes_asyncio's own places, where Kubernetes mounts them
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_POLL_SECONDS = 5.0  # half a heartbeat: a renewed certificate is in use before the next one is due
_LEAST_SECONDS = 1.0  # a server that answers 401 to everything does not make us read files all the time
_AHEAD = timedelta(seconds=30)

Stamps = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The address of an API server, and what authenticates us there."""

    source: str  # the file a person would look into
    server: str  # without a slash at its end
    tls: ssl.SSLContext | bool  # False: plain HTTP
    tls_server_name: str = ""  # verified instead of the server's host
    authorization: str = field(default="", repr=False)  # the header
    proxy: str | None = field(default=None, repr=False)  # may have a password in it
    headers: tuple[tuple[str, str], ...] = ()  # sent with every request
    authority: bytes = field(default=b"", repr=False)  # PEM of the CA of the API server; empty if it is any or none
    certificate_pem: str = field(default="", repr=False)  # the client certificate, without its key
    files: tuple[Path, ...] = ()  # a change of one of them may change the credentials
    expires_at: datetime | None = None
    digest: str = ""  # two credentials with the same digest are the same


async def load_credentials(kubeconfig: str, pair: Path | None = None) -> Credentials:
    """Load the kubeconfig, or the pod's service account if none is named. Raises StartError with what is wrong.

    `pair` is a file with a certificate and its key; once it exists, it is used instead of those of the kubeconfig.
    """
    if not kubeconfig:
        return await asyncio.to_thread(_from_service_account)
    with _explained(kubeconfig):
        config = await asyncio.to_thread(read_kubeconfig, Path(kubeconfig))
        if pair is not None:
            config = await asyncio.to_thread(with_pair, config, pair)
        expires_at = None
        if config.plugin:
            issued = await run_plugin(config.plugin, cluster=config.cluster, folder=config.folder)
            config, expires_at = replace(config, user=config.user | issued.user), issued.expires_at
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
    pems = await asyncio.to_thread(lambda: tuple(map(config.content, PEM_NAMES)))
    credentials = await asyncio.to_thread(_credentials, path, configuration, pems, config.headers)
    if credentials.tls and config.is_insecure:
        _warn_of_insecure(path, str(configuration.host))
    certificate_pem = pems[PEM_NAMES.index("client-certificate")].decode("ascii", "replace")
    return replace(credentials, files=config.files, expires_at=expires_at, certificate_pem=certificate_pem)


@lru_cache(maxsize=64)  # logged once, however often a file is read
def _warn_of_insecure(path: str, server: str) -> None:
    fields = {"kubeconfig": path, "server": server}
    log.warning("insecure-skip-tls-verify is set: whoever answers as the API server gets our credentials", fields)


def _from_service_account() -> Credentials:
    configuration, token = Configuration(), _SERVICE_ACCOUNT / "token"
    try:
        load_incluster_config(client_configuration=configuration, try_refresh_token=False)  # type: ignore[no-untyped-call]
        configuration.api_key["BearerToken"] = f"Bearer {read_token(token)}"
        authority = Path(configuration.ssl_ca_cert or "")
        credentials = _credentials("the service account", configuration, (authority.read_bytes(),), ())
    except ConfigException as error:
        raise StartError(
            f"no --kubeconfig given and no service account to use instead: {error}",
            hint="name a cluster with --kubeconfig FILE, join one with `fake-kubelet join`, or see `fake-kubelet demo`",
        ) from error
    except (OSError, ValueError) as error:
        raise StartError(f"the service account in {_SERVICE_ACCOUNT} does not load: {error}") from error
    return replace(credentials, files=(token, authority))


def _credentials(
    source: str, configuration: Configuration, pems: tuple[bytes, ...], headers: tuple[tuple[str, str], ...]
) -> Credentials:
    """Take what is ours out of the library's configuration, which has no types."""
    server, verify = str(configuration.host), bool(configuration.verify_ssl)
    tls_server_name = str(configuration.tls_server_name or "")
    authorization = str(configuration.api_key.get("BearerToken") or "")
    proxy = proxy_for(server, configuration.proxy)
    content = (server, verify, tls_server_name, proxy, authorization, headers, pems)
    return Credentials(
        source=source,
        server=server.rstrip("/"),
        tls=_tls(*pems, verify=verify) if server.startswith("https://") else False,
        tls_server_name=tls_server_name,
        authorization=authorization,
        proxy=proxy,
        headers=headers,
        authority=pems[0],
        digest=hashlib.sha256(repr(content).encode()).hexdigest(),
    )


def _tls(authority: bytes, certificate: bytes = b"", key: bytes = b"", *, verify: bool) -> ssl.SSLContext:
    context = client_context(authority, verify=verify)
    if certificate:
        with in_memory(certificate, key or certificate) as (certificate_path, key_path):
            context.load_cert_chain(certificate_path, key_path, no_password)
    return context


class CredentialsUser(Protocol):
    """Uses credentials that can be replaced."""

    async def use(self, credentials: Credentials) -> None:
        """Use these credentials from now on."""


class CredentialReloader:
    """Gives new credentials to all connections: after a change of files, a token's expiry, or an answer 401."""

    def __init__(
        self,
        *,
        kubeconfig: str,
        current: Credentials,
        connections: Sequence[CredentialsUser],
        requested: asyncio.Event,
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        pair: Path | None = None,
    ) -> None:
        self._kubeconfig = kubeconfig
        self._pair = pair  # a client certificate that is renewed; it wins over that of the kubeconfig
        self._current = current
        self._connections = connections
        self._requested = requested
        self._clock = clock
        self._on_change = on_change
        self._stamps = _stamps(current.files)
        self._pending_stamps: asyncio.Future[Stamps] | None = None
        self._error = ""

    async def run(self) -> None:
        """Look every five seconds, and at once when `requested` is set, until cancelled."""
        while True:
            is_requested = await self._clock.wait(self._requested, _POLL_SECONDS)
            self._requested.clear()
            if is_requested or await self._is_outdated():
                await self.sync()
                await self._clock.sleep(_LEAST_SECONDS)

    async def sync(self) -> None:
        """Load the credentials and use them if they have changed; credentials that do not load change nothing."""
        try:
            loaded = await load_credentials(self._kubeconfig, self._pair)
            self._stamps = await asyncio.to_thread(_stamps, loaded.files)
        except StartError as error:
            if str(error) != self._error:  # logged once, not every five seconds
                self._error = str(error)
                log.error("Unable to reload credentials, keeping those in use", {"err": error})
            return
        self._error = ""
        is_changed = loaded.digest != self._current.digest
        self._current = loaded
        if is_changed:
            log.info("Credentials changed, connecting anew", {"source": loaded.source, "server": loaded.server})
            for connection in self._connections:
                await connection.use(loaded)
            self._on_change()

    async def _is_outdated(self) -> bool:
        expires_at = self._current.expires_at
        if expires_at and self._clock.now() >= expires_at - _AHEAD:
            return True
        return await self._current_stamps() != self._stamps

    async def _current_stamps(self) -> Stamps:
        """Read the stamps of the files; while a disk does not answer, do not start a second read."""
        if self._pending_stamps is None or self._pending_stamps.done():
            run = asyncio.get_running_loop().run_in_executor
            self._pending_stamps = run(None, _stamps, self._current.files)
        try:
            async with asyncio.timeout(_POLL_SECONDS):
                return await asyncio.shield(self._pending_stamps)
        except TimeoutError:
            return self._stamps


def _stamps(files: Sequence[Path]) -> Stamps:
    return tuple(_stamp(path) for path in files)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
