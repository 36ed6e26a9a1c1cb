"""Cluster discovery as in kubeadm: by the cluster-info ConfigMap and a token, or by a file."""

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

from agent.adapters.fetch import MOST_BYTES, Answer, fetch, fetch_reason
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
_PIPE_SECONDS = 0.05  # how often a pipe is read
_UNTRUSTED = "couldn't validate the identity of the API Server"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cluster:
    """The API server of a cluster, and the authority that signs its certificate."""

    server: str
    authority_pem: str
    user: Object = field(repr=False)  # credentials that a discovery file brought along


class Discovery:
    """Finds a cluster; requests are repeated until they succeed, or until the deadline of the whole discovery."""

    def __init__(self, *, clock: Clock, timeout_seconds: float, transport: httpx.AsyncBaseTransport | None = None):
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._transport = transport
        self._end_seconds = 0.0
        self._fault = ""  # why the last attempt failed

    async def by_token(self, endpoint: str, token: Token, pins: frozenset[str]) -> Cluster:
        """Read cluster-info without trust, check the signature and the pins, then read it again with its authority."""
        server, unverified = f"https://{endpoint}", client_context(verify=False)  # the answer has the authority
        async with self._deadline():
            first = await self._retried(lambda: self._signed(server, token, unverified))
            cluster = await _cluster(first, _CONFIG_MAP)
            if pins:
                check_pins(_authorities(cluster.authority_pem), pins)
                verified = _verifying_context(cluster.authority_pem, _CONFIG_MAP)
                if await self._retried(lambda: self._signed(server, token, verified)) != first:
                    raise Distrusted(
                        "the second kubeconfig from the cluster-info ConfigMap (using validated TLS) "
                        "was different from the first"
                    )
            return cluster

    async def by_file(self, place: str) -> Cluster:
        """Read a kubeconfig from a file or an https URL, and check that its authority verifies its server."""
        async with self._deadline():
            text = await self._retried(lambda: self._file(place))
            cluster = await _cluster(text, place, None if place.startswith("https://") else Path(place).parent)
            verified = _verifying_context(cluster.authority_pem, place)
            await self._retried(lambda: self._check_server(cluster.server, verified))
            return cluster

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """Limit the whole discovery, also an answer that comes byte by byte; without a timeout, one attempt."""
        self._end_seconds = self._clock.monotonic() + self._timeout_seconds
        limit_seconds = self._timeout_seconds or _REQUEST_SECONDS
        try:
            async with asyncio.timeout(limit_seconds):
                yield
        except TimeoutError as error:
            fault = self._fault or f"no whole answer within {limit_seconds:g}s"
            raise StartError(f"{_UNTRUSTED}: {fault}") from error

    async def _check_server(self, server: str, tls: ssl.SSLContext) -> None:
        """Connect to the server, which verifies its certificate; cluster-info itself need not be public there."""
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
            # The proxy that the daemon uses; httpx reads the environment differently, and has passwords in its errors.
            transport = self._transport or httpx.AsyncHTTPTransport(verify=tls, proxy=proxy_for(url, None))
            return await fetch(url, transport, seconds=_REQUEST_SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"{url.removesuffix(_CLUSTER_INFO)}: no answer within {_REQUEST_SECONDS:g}s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise Unavailable(f"{url.removesuffix(_CLUSTER_INFO)}: {fetch_reason(error, url)}") from error

    async def _retried(self, request: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request until it succeeds. Raises StartError with the last failure at the deadline."""
        while True:
            try:
                return await request()
            except Unavailable as error:
                left = self._end_seconds - self._clock.monotonic()
                if left <= 0:
                    raise StartError(f"{_UNTRUSTED}: {error}") from error
                if str(error) != self._fault:  # logged once, not every second
                    log.info("Retrying discovery", {"err": error, "giveUpAfter": f"{left:.0f}s"})
                self._fault = str(error)
                await self._clock.sleep(min(_PAUSE_SECONDS, left))


async def _read(place: str) -> bytes:
    """Read a file of limited size; a pipe is read as its writer writes, without blocking the event loop."""
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
    """Return the data of cluster-info. Raises Unavailable without them: the right to read it may come later."""
    try:
        data = json.loads(answer.body)["data"] if answer.status == 200 else None
    except (ValueError, KeyError, TypeError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Unavailable(f"failed to request {_CONFIG_MAP}: HTTP {answer.status} {answer.reason}")
    return {str(key): str(value) for key, value in data.items()}


async def _cluster(text: str, source: str, folder: Path | None = None) -> Cluster:
    """Return the cluster of a kubeconfig; its files are relative to the folder, without one it may name none."""
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
        raise ConfigError(f"malformed kubeconfig in {source}: no usable cluster, user or context in it") from error


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


def _verifying_context(authority_pem: str, source: str) -> ssl.SSLContext:
    try:
        return client_context(authority_pem.encode())
    except ssl.SSLError as error:
        raise ConfigError(f"the certificate-authority in {source} does not load: {error}") from error
