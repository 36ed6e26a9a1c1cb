"""Finding a cluster by kubeadm's words: cluster-info over HTTP, or a file that tells about it."""

import asyncio
import base64
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx

from agent.adapters.fetch import MOST_BYTES, Answer, fetch
from agent.adapters.go_yaml import load_private
from agent.adapters.kubeconfig import check_verification, server_of
from agent.adapters.lazy_kubernetes import ConfigException
from agent.adapters.tls import client_context
from agent.adapters.transport import proxy_for
from agent.core.discovery import Distrusted, Token, check_pins, signed_kubeconfig
from agent.core.errors import ConfigError
from agent.core.model import Object
from agent.core.x509 import Certificate, read_certificates
from agent.ports import Clock, StartError, Unavailable

log = logging.getLogger(__name__)

_CONFIG_MAP = "the cluster-info ConfigMap"
_CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
_PAUSE_SECONDS = 1.0  # kubeadm waits 5 s; a fresh token is signed within one or two
_REQUEST_SECONDS = 10.0
_PIPE_SECONDS = 0.05  # how often a pipe is asked for more
_UNTRUSTED = "couldn't validate the identity of the API Server"

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is, and whom to trust there."""

    server: str
    authority_pem: str
    user: Object = field(repr=False)  # credentials that a discovery file brought along


class Discovery:
    """Asks until it gets an answer, or until it has asked for long enough: one deadline holds for all of it."""

    def __init__(self, *, clock: Clock, patience_seconds: float, transport: httpx.AsyncBaseTransport | None = None):
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._transport = transport
        self._end_seconds = 0.0
        self._fault = ""  # why the last attempt failed

    async def by_token(self, endpoint: str, token: Token, pins: frozenset[str]) -> Cluster:
        """Ask without trust, check the signature and the pins, then ask once more with the authority that was found."""
        server, untrusting = f"https://{endpoint}", client_context(verify=False)  # whom to trust is what is asked
        async with self._deadline():
            first = await self._patiently(lambda: self._signed(server, token, untrusting))
            cluster = await _cluster(first, _CONFIG_MAP)
            if pins:
                check_pins(_authorities(cluster.authority_pem), pins)
                trusting = _trusting(cluster.authority_pem, _CONFIG_MAP)
                if await self._patiently(lambda: self._signed(server, token, trusting)) != first:
                    raise Distrusted(
                        "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) "
                        "was different from the first"
                    )
            return cluster

    async def by_file(self, place: str) -> Cluster:
        """Read a kubeconfig from a file or an https address, and see that its server is the one it tells about."""
        async with self._deadline():
            text = await self._patiently(lambda: self._file(place))
            cluster = await _cluster(text, place, None if place.startswith("https://") else Path(place).parent)
            trusting = _trusting(cluster.authority_pem, place)
            await self._patiently(lambda: self._met(cluster.server, trusting))
            return cluster

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """The end of everything, also of an answer that comes byte by byte; without patience, that of one attempt."""
        self._end_seconds = self._clock.monotonic() + self._patience_seconds
        limit_seconds = self._patience_seconds or _REQUEST_SECONDS
        try:
            async with asyncio.timeout(limit_seconds):
                yield
        except TimeoutError as error:
            fault = self._fault or f"no whole answer within {limit_seconds:g}s"
            raise StartError(f"{_UNTRUSTED}: {fault}") from error

    async def _met(self, server: str, tls: ssl.SSLContext) -> None:
        """Whether the server is the right one is all that is asked: cluster-info need not be for everybody there."""
        answer = await self._get(server + _CLUSTER_INFO, tls)
        if answer.status not in {401, 403}:
            _data(answer)

    async def _signed(self, server: str, token: Token, tls: ssl.SSLContext) -> str:
        content = signed_kubeconfig(_data(await self._get(server + _CLUSTER_INFO, tls)), token)
        if content is None:
            raise Unavailable(
                f'token id "{token.id}" is invalid for this cluster or it has expired. '
                'Use "kubeadm token create" on the control-plane node to create a new valid token'
            )
        return content

    async def _file(self, place: str) -> str:
        if not place.startswith("https://"):
            try:
                content = await _read(place)
            except OSError as error:
                raise StartError(f"cannot read --discovery-file {place}: {error.strerror}") from error
            if not content:
                raise Unavailable(f"--discovery-file {place} is empty")
            return content.decode("utf-8", "replace")
        answer = await self._get(place, client_context())
        if answer.status != 200:
            raise Unavailable(f"--discovery-file {place}: HTTP {answer.status}")
        return answer.text

    async def _get(self, url: str, tls: ssl.SSLContext) -> Answer:
        try:
            # The daemon's way to the server; httpx has its own ideas of the environment, and would repeat a password.
            transport = self._transport or httpx.AsyncHTTPTransport(verify=tls, proxy=proxy_for(url, None))
            return await fetch(url, transport, seconds=_REQUEST_SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"{url.removesuffix(_CLUSTER_INFO)}: no answer within {_REQUEST_SECONDS:g}s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise Unavailable(f"{url.removesuffix(_CLUSTER_INFO)}: {error or type(error).__name__}") from error

    async def _patiently(self, ask: Callable[[], Awaitable[Found]]) -> Found:
        """Ask until it works; a StartError has the reason of the last failure."""
        while True:
            try:
                return await ask()
            except Unavailable as error:
                left = self._end_seconds - self._clock.monotonic()
                if left <= 0:
                    raise StartError(f"{_UNTRUSTED}: {error}") from error
                if str(error) != self._fault:  # said once, not every second
                    log.info("Retrying discovery", {"err": error, "giveUpAfter": f"{left:.0f}s"})
                self._fault = str(error)
                await self._clock.sleep(min(_PAUSE_SECONDS, left))


async def _read(place: str) -> bytes:
    """A file of moderate size; a pipe is read as its writer writes, and holds nobody up who has a deadline."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:  # noqa: ASYNC230, PTH123  nothing else runs yet
        content = b""
        while (part := file.read(2**16)) != b"":
            content += part or b""
            if len(content) > MOST_BYTES:
                raise StartError(f"{place} is larger than {MOST_BYTES} bytes")
            if part is None:
                await asyncio.sleep(_PIPE_SECONDS)
    return content


def _data(answer: Answer) -> dict[str, str]:
    """What cluster-info holds; Unavailable if this is not it, as rights to read it may come a moment later."""
    try:
        data = json.loads(answer.body)["data"] if answer.status == 200 else None
    except (ValueError, KeyError, TypeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Unavailable(f"failed to request {_CONFIG_MAP}: HTTP {answer.status} {answer.reason}")
    return {str(key): str(value) for key, value in data.items()}


async def _cluster(text: str, source: str, folder: Path | None = None) -> Cluster:
    """The cluster that a kubeconfig tells about; its files are in this folder, or it may name none."""
    try:
        document = load_private(text)
        clusters = {entry["name"]: entry["cluster"] for entry in document["clusters"]}
        contexts = {entry["name"]: entry["context"] for entry in document.get("contexts") or ()}
        users = {entry["name"]: entry["user"] for entry in document.get("users") or ()}
        context = contexts.get(document.get("current-context"), {})
        # cluster-info has one cluster without a name, and no context
        cluster = clusters[context["cluster"]] if context else next(iter(clusters.values()))
        check_verification(cluster)
        pem = await _authority(cluster, folder)
        return Cluster(server_of(cluster, {}).rstrip("/"), pem, users.get(context.get("user")) or {})
    except ConfigException as error:
        raise ConfigError(f"malformed kubeconfig in {source}: {error}") from error
    except (KeyError, TypeError, ValueError, StopIteration, AttributeError, OSError) as error:
        raise ConfigError(f"malformed kubeconfig in {source}: {error!r}") from error


async def _authority(cluster: Object, folder: Path | None) -> str:
    if data := cluster.get("certificate-authority-data"):
        return base64.b64decode(data, validate=True).decode("ascii")
    if not (path := cluster.get("certificate-authority")):
        return ""
    if folder is None or not isinstance(path, str):
        raise ConfigException("a kubeconfig from elsewhere cannot name a certificate-authority on this machine")
    if not (content := await _read(str(folder / path))):
        raise ConfigException(f"certificate-authority {path} is empty")
    return content.decode("ascii")


def _authorities(pem: str) -> tuple[Certificate, ...]:
    try:
        return read_certificates(pem)
    except ValueError as error:
        raise Distrusted(f"failed to parse cluster CA from {_CONFIG_MAP}: {error}") from error


def _trusting(authority_pem: str, source: str) -> ssl.SSLContext:
    try:
        return client_context(authority_pem.encode())
    except ssl.SSLError as error:
        raise ConfigError(f"the certificate-authority in {source} does not load: {error}") from error
