"""The kubelet's API: one request at a time, in the order in which a kubelet decides."""

import logging
import re
from urllib.parse import unquote

from aiohttp import hdrs, web

from agent.adapters.server.counting import ServerTallies
from agent.adapters.server.endpoints import Endpoint
from agent.adapters.server.gate import Caller, Denial, Gate
from agent.adapters.server.replies import moved, not_found, plain
from agent.adapters.server.tls import verified_chain
from agent.core.routing import Found, Missing, Moved, Refused, Table

log = logging.getLogger(__name__)

_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class KubeletApi:
    """Answers requests as a kubelet does: an unknown path first, then who asks, then the method, then the answer."""

    def __init__(
        self,
        table: Table[Endpoint],
        *,
        tallies: ServerTallies,
        gate: Gate | None = None,
    ) -> None:
        self._table, self._gate, self._tallies = table, gate, tallies
        self._type = "readwrite" if gate else "readonly"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """One request."""
        with self._tallies.counted(request.method, request.path, self._type):
            is_escaped = not _NO_ESCAPE.search(request.rel_url.raw_path)
            return await self._answered(request) if is_escaped else plain("400 Bad Request", status=400)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        found = self._table.find(request.rel_url.raw_path, request.method, request.headers.get(hdrs.ACCEPT, ""))
        if isinstance(found, Missing):
            return not_found()
        if isinstance(found, Moved):
            query = request.rel_url.raw_query_string
            return moved(f"{found.path}?{query}" if query else found.path, request.method)
        if denial := await self._denial(request):
            return plain(denial.text, status=denial.status)
        if isinstance(found, Refused):
            return plain(found.text, status=found.status, allow=found.allow)
        return await self._told(request, found)

    async def _told(self, request: web.BaseRequest, found: Found[Endpoint]) -> web.StreamResponse:
        try:
            return await found.endpoint(request, found.parameters)
        except (OSError, TimeoutError, ValueError) as error:
            log.error("HTTP InternalServerError serving", {"err": error, "request": request.path})
            return plain(f"Internal Error: {error}", status=500)

    async def _denial(self, request: web.BaseRequest) -> Denial | None:
        if self._gate is None:
            return None
        tls = request.transport.get_extra_info("ssl_object") if request.transport else None
        caller = Caller(
            chain=verified_chain(tls) if tls else (),
            authorization=request.headers.get(hdrs.AUTHORIZATION, ""),
            protocols=tuple(request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())),
        )
        # Unescaped as the table has it: what is asked for and what is allowed must be one path.
        return await self._gate.denial(caller, request.method, unquote(request.rel_url.raw_path))
