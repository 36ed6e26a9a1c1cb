"""The kubelet's API: one request at a time, in the order in which a kubelet decides."""

import logging
from urllib.parse import quote_from_bytes

from aiohttp import hdrs, web

from agent.adapters.server.auth_filter import AuthFilter, Caller, Denial
from agent.adapters.server.endpoints import Endpoint
from agent.adapters.server.framing import NO_ESCAPE
from agent.adapters.server.limited_log import LimitedLog
from agent.adapters.server.metrics import ServerMetrics
from agent.adapters.server.replies import fault, moved, not_found, plain
from agent.adapters.server.tls import verified_chain
from agent.core.access import is_websocket
from agent.core.routing import NoRoute, Redirect, RouteMatch, RouteTable, ServiceError, unescaped
from agent.ports import Clock

log = logging.getLogger(__name__)

_ASCII = bytes(range(0x21, 0x7F))


class KubeletApi:
    """Answers requests as a kubelet does: an unknown path first, then who asks, then the method, then the answer."""

    def __init__(
        self,
        table: RouteTable[Endpoint],
        *,
        metrics: ServerMetrics,
        clock: Clock,
        auth_filter: AuthFilter | None = None,
    ) -> None:
        self._table, self._auth_filter, self._metrics = table, auth_filter, metrics
        self._type = "readwrite" if auth_filter else "readonly"
        self._log = LimitedLog(log, clock)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        try:
            with self._metrics.counted(request.method, request.path, self._type):
                is_escaped = not NO_ESCAPE.search(request.rel_url.raw_path)
                return await self._answered(request) if is_escaped else plain("400 Bad Request", status=400)
        except (web.RequestPayloadError, ConnectionError):  # the body makes no sense, or the client has left
            return plain("400 Bad Request", status=400)
        except Exception as error:
            self._log.unexpected("Unable to answer a request", {"path": request.path}, error)
            return fault("500 Internal Server Error", status=500)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        path, query = _escaped(request.rel_url.raw_path), _escaped(request.rel_url.raw_query_string)
        found = self._table.find(path, request.method, request.headers.get(hdrs.ACCEPT, ""))
        if isinstance(found, NoRoute):
            return not_found()
        if isinstance(found, Redirect):
            return moved(f"{found.path}?{query}" if query else found.path, request.method)
        if denial := await self._denial(request, path):
            return plain(denial.text, status=denial.status)
        if isinstance(found, ServiceError):
            return plain(found.text, status=found.status, allow=found.allow)
        return await self._told(request, found)

    async def _told(self, request: web.BaseRequest, found: RouteMatch[Endpoint]) -> web.StreamResponse:
        try:
            return await found.endpoint(request, found.parameters)
        except ConnectionError:
            raise
        except (OSError, TimeoutError) as error:
            told = {"err": error, "request": request.path}
            self._log.log(logging.ERROR, "HTTP InternalServerError serving", told)
            return plain(f"Internal Error: {error}", status=500)

    async def _denial(self, request: web.BaseRequest, path: str) -> Denial | None:
        if self._auth_filter is None:
            return None
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        headers = request.headers
        wants_websocket = is_websocket(headers.get(hdrs.UPGRADE, ""), headers.getall(hdrs.CONNECTION, ()))
        caller = Caller(
            chain=verified_chain(tls) if tls else (),
            authorization=headers.get(hdrs.AUTHORIZATION, ""),
            protocols=tuple(headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())) if wants_websocket else (),
        )
        # Unescaped as the table has it: what is asked for and what is allowed must be one path.
        return await self._auth_filter.denial(caller, request.method, unescaped(path))


def _escaped(text: str) -> str:
    """A path or query as Go would write it: bytes beyond ASCII, which nobody should send, as escapes."""
    return text if text.isascii() else quote_from_bytes(text.encode(errors="surrogateescape"), safe=_ASCII)
