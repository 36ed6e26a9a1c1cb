"""The Kubernetes API behind our ports: kubernetes-asyncio on sessions of our own; its errors stop here."""

import asyncio.sslproto
import ssl
from typing import Any

import aiohttp
import msgspec

from agent import __version__
from agent.adapters.credentials import Credentials
from agent.adapters.lazy_kubernetes import ApiClient, RESTClientObject
from agent.core import events, lease
from agent.core.config import KUBELET_VERSION
from agent.core.goduration import format_seconds
from agent.core.model import Object
from agent.ports import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    Rejected,
    Unauthorized,
    Unavailable,
)

_DEFAULT_TIMEOUT_SECONDS = 30.0
_IDLE_SECONDS = 90.0  # as Go's http.Transport
_JSON = "application/json"
_STRATEGIC_MERGE = "application/strategic-merge-patch+json"

if hasattr(asyncio.sslproto.SSLProtocol, "max_size"):
    # asyncio sets aside 256 KiB for each TLS connection; a heartbeat is 1 KiB.
    asyncio.sslproto.SSLProtocol.max_size = 16 * 1024


class _Rest(RESTClientObject):
    """The library's request code on a given session; its own would ask netrc in a thread for each request."""

    def __init__(self, configuration: Any, session: aiohttp.ClientSession) -> None:
        self.pool_manager = session
        self.proxy = configuration.proxy
        self.proxy_headers = configuration.proxy_headers
        self.server_hostname = configuration.tls_server_name


class _Client(ApiClient):
    """The library's client without the session, thread pool and system CAs that its constructor sets up."""

    def __init__(self, configuration: Any, session: aiohttp.ClientSession) -> None:
        self.configuration = configuration
        self.rest_client = _Rest(configuration, session)
        self.default_headers: dict[str, str] = {}
        self.cookie = None  # type: ignore[assignment]
        self.client_side_validation = False


class Lane:
    """One way to the API server, with its own connections and its own deadline."""

    def __init__(self, credentials: Credentials, *, architecture: str, timeout_seconds: float | None = None) -> None:
        self._credentials = credentials
        self._timeout_seconds = timeout_seconds or _DEFAULT_TIMEOUT_SECONDS
        # The server gives up when we do; kubelet says so for heartbeats only.
        self._query = [("timeout", format_seconds(timeout_seconds))] if timeout_seconds else []
        connector = aiohttp.TCPConnector(ssl=credentials.tls, limit=0, keepalive_timeout=_IDLE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector)
        self._client = _Client(credentials.configuration, self._session)
        # The part before the slash becomes the manager in managedFields, as for a kubelet.
        self._client.user_agent = f"kubelet/{KUBELET_VERSION} (linux/{architecture}) fake-kubelet/{__version__}"

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def call(self, method: str, path: str, body: Object | None = None, content_type: str = _JSON) -> Object:
        """One request; its answer as an object, or an ApiError."""
        try:
            response = await self._client.call_api(
                path,
                method,
                query_params=self._query,
                header_params={"Accept": _JSON, "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=self._timeout_seconds,
            )
            async with response:
                content = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise Unavailable(self._described(method, path, error)) from error
        return _decoded(response.status, content, response.headers.get("Retry-After"))

    def _described(self, method: str, path: str, error: Exception) -> str:
        where = f'{method.capitalize()} "{self._credentials.server}{path}"'
        if isinstance(error, TimeoutError):
            return f"{where}: no answer within {format_seconds(self._timeout_seconds)}"
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = getattr(error.certificate_error, "verify_message", error.certificate_error)
            hint = f"check certificate-authority in {self._credentials.source}"
            return f"{where}: certificate of the API server not trusted: {reason}; {hint}"
        if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
            return f"{where}: TLS handshake failed: {error}"
        if isinstance(error, aiohttp.ClientConnectorError):
            return f"{where}: {error.os_error.strerror or error.os_error}"
        return f"{where}: {error or type(error).__name__}"


class KubeNodes:
    """Nodes, as NodeApi wants them."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def get(self, name: str) -> Object:
        """Read the Node."""
        return await self._lane.call("GET", f"/api/v1/nodes/{name}")

    async def create(self, node: Object) -> Object:
        """Create the Node."""
        return await self._lane.call("POST", "/api/v1/nodes", node)

    async def patch_status(self, name: str, patch: Object) -> Object:
        """Apply a strategic-merge patch through the status subresource."""
        return await self._lane.call("PATCH", f"/api/v1/nodes/{name}/status", patch, _STRATEGIC_MERGE)


class KubeLeases:
    """Node leases, as LeaseApi wants them."""

    _PATH = f"/apis/coordination.k8s.io/v1/namespaces/{lease.NAMESPACE}/leases"

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def get(self, name: str) -> Object:
        """Read the Lease."""
        return await self._lane.call("GET", f"{self._PATH}/{name}")

    async def create(self, lease: Object) -> Object:
        """Create the Lease."""
        return await self._lane.call("POST", self._PATH, lease)

    async def replace(self, lease: Object) -> Object:
        """Write the Lease if it is still the version it was read as."""
        return await self._lane.call("PUT", f"{self._PATH}/{lease['metadata']['name']}", lease)


class KubeCSINodes:
    """CSINodes, as CSINodeApi wants them."""

    _PATH = "/apis/storage.k8s.io/v1/csinodes"

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def get(self, name: str) -> Object:
        """Read the CSINode."""
        return await self._lane.call("GET", f"{self._PATH}/{name}")

    async def create(self, csinode: Object) -> Object:
        """Create the CSINode."""
        return await self._lane.call("POST", self._PATH, csinode)

    async def delete(self, name: str) -> None:
        """Delete the CSINode."""
        await self._lane.call("DELETE", f"{self._PATH}/{name}")


class KubeEvents:
    """Events, as EventApi wants them."""

    _PATH = f"/api/v1/namespaces/{events.NAMESPACE}/events"

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def create(self, event: Object) -> Object:
        """Send an event."""
        return await self._lane.call("POST", self._PATH, event)

    async def patch(self, name: str, patch: Object) -> Object:
        """Count an event that was sent before once more."""
        return await self._lane.call("PATCH", f"{self._PATH}/{name}", patch, _STRATEGIC_MERGE)


def _decoded(status: int, content: bytes, retry_after: str | None) -> Object:
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise Unavailable(f"the answer is no Kubernetes object (HTTP {status})")
    if 200 <= status < 300:
        return answer
    raise _error(status, answer, retry_after)


def _error(status: int, answer: Object, retry_after: str | None) -> ApiError:
    message = str(answer.get("message") or f"HTTP {status}")
    seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
    if status == 429 or status >= 500 or answer.get("kind") != "Status":
        return Unavailable(message, retry_after_seconds=seconds)
    if status == 409:
        return (AlreadyExists if answer.get("reason") == "AlreadyExists" else Conflict)(message)
    return {401: Unauthorized, 403: Forbidden, 404: NotFound}.get(status, Rejected)(message)
