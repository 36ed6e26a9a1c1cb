"""Finding a cluster by kubeadm's words: cluster-info over HTTP, or a file that tells about it."""

import base64
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx

from agent.adapters.kubeconfig import parsed
from agent.adapters.lazy_kubernetes import ConfigException
from agent.adapters.proxies import proxy_for
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
_MOST_BYTES = 2**20

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where a cluster is, and whom to trust there."""

    server: str
    authority_pem: str
    user: Object = field(repr=False)  # credentials that a discovery file brought along


class Discovery:
    """Asks until it gets an answer, or until it has asked for long enough."""

    def __init__(self, *, clock: Clock, patience_seconds: float, transport: httpx.AsyncBaseTransport | None = None):
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._transport = transport

    async def by_token(self, endpoint: str, token: Token, pins: frozenset[str]) -> Cluster:
        """Ask without trust, check the signature and the pins, then ask once more with the authority that was found."""
        server = f"https://{endpoint}"
        first = await self._patiently(lambda: self._signed(server, token, _untrusting()))
        cluster = _cluster(first, _CONFIG_MAP)
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
        text = await self._patiently(lambda: self._file(place))
        cluster = _cluster(text, place, Path(place).parent)
        trusting = _trusting(cluster.authority_pem, place)
        await self._patiently(lambda: self._met(cluster.server, trusting))
        return cluster

    async def _met(self, server: str, tls: ssl.SSLContext) -> None:
        """Whether the server is the right one is all that is asked: cluster-info need not be for everybody there."""
        response = await self._get(server + _CLUSTER_INFO, tls)
        if response.status_code not in {401, 403}:
            _data(response)

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
                return Path(place).read_text("utf-8")  # noqa: ASYNC240  nothing else runs yet
            except OSError as error:
                raise StartError(f"cannot read --discovery-file {place}: {error.strerror}") from error
        response = await self._get(place, ssl.create_default_context())
        if response.status_code != 200:
            raise Unavailable(f"--discovery-file {place}: HTTP {response.status_code}")
        return response.text

    async def _get(self, url: str, tls: ssl.SSLContext) -> httpx.Response:
        # The daemon's way to the server; httpx has its own ideas of the environment, and would repeat a password.
        transport = self._transport or httpx.AsyncHTTPTransport(verify=tls, proxy=proxy_for(url, None))
        try:
            async with httpx.AsyncClient(transport=transport, timeout=_REQUEST_SECONDS) as client:
                response = await client.get(url)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise Unavailable(f"{url.removesuffix(_CLUSTER_INFO)}: {error or type(error).__name__}") from error
        if len(response.content) > _MOST_BYTES:
            raise Unavailable(f"{url}: the answer is larger than {_MOST_BYTES} bytes")
        return response

    async def _patiently(self, ask: Callable[[], Awaitable[Found]]) -> Found:
        """Ask until it works; a StartError has the reason of the last failure."""
        end_seconds, told = self._clock.monotonic() + self._patience_seconds, ""
        while True:
            try:
                return await ask()
            except Unavailable as error:
                left = end_seconds - self._clock.monotonic()
                if left <= 0:
                    raise StartError(f"couldn't validate the identity of the API Server: {error}") from error
                if str(error) != told:  # said once, not every second
                    log.info("Retrying discovery", {"err": error, "giveUpAfter": f"{left:.0f}s"})
                told = str(error)
                await self._clock.sleep(min(_PAUSE_SECONDS, left))


def _data(response: httpx.Response) -> dict[str, str]:
    """What cluster-info holds; Unavailable if this is not it, as rights to read it may come a moment later."""
    try:
        data = response.json()["data"] if response.status_code == 200 else None
    except (ValueError, KeyError, TypeError):
        data = None
    if not isinstance(data, dict):
        status = f"HTTP {response.status_code} {response.reason_phrase}"
        raise Unavailable(f"failed to request {_CONFIG_MAP}: {status}")
    return {str(key): str(value) for key, value in data.items()}


def _cluster(text: str, source: str, folder: Path = Path()) -> Cluster:
    try:
        document = parsed(text)
        clusters = {entry["name"]: entry["cluster"] for entry in document["clusters"]}
        contexts = {entry["name"]: entry["context"] for entry in document.get("contexts") or ()}
        users = {entry["name"]: entry["user"] for entry in document.get("users") or ()}
        context = contexts.get(document.get("current-context"), {})
        # cluster-info has one cluster without a name, and no context
        cluster = clusters[context["cluster"]] if context else next(iter(clusters.values()))
        pem = _authority(cluster, folder)
        return Cluster(str(cluster["server"]).rstrip("/"), pem, users.get(context.get("user")) or {})
    except ConfigException as error:
        raise ConfigError(f"malformed kubeconfig in {source}: {error}") from error
    except (KeyError, TypeError, ValueError, StopIteration, AttributeError, OSError) as error:
        raise ConfigError(f"malformed kubeconfig in {source}: {error!r}") from error


def _authority(cluster: Object, folder: Path) -> str:
    if data := cluster.get("certificate-authority-data"):
        return base64.b64decode(data, validate=True).decode("ascii")
    if path := cluster.get("certificate-authority"):
        return Path(folder / str(path)).read_text("ascii")
    return ""


def _authorities(pem: str) -> tuple[Certificate, ...]:
    try:
        return read_certificates(pem)
    except ValueError as error:
        raise Distrusted(f"failed to parse cluster CA from {_CONFIG_MAP}: {error}") from error


def _untrusting() -> ssl.SSLContext:
    """For the first question only: whom to trust is what is asked."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(authority_pem: str, source: str) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=authority_pem or None)
    except ssl.SSLError as error:
        raise ConfigError(f"the certificate-authority in {source} does not load: {error}") from error
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # as for the API server later: Go asks less of a CA
    return context
