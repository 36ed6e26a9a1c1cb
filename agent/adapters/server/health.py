"""Health over plain HTTP, for the machine itself: /healthz for machines, a page at / for people."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from ipaddress import ip_address
from socket import socket

from aiohttp import hdrs, web

from agent.adapters.server.entrance import listen
from agent.adapters.server.healthz import Check, Handler, Observe, healthz_handlers
from agent.adapters.server.limited_log import LimitedLog
from agent.adapters.server.listener import Listener
from agent.adapters.server.page import Page
from agent.adapters.server.replies import fault, not_found, plain
from agent.core.config import Serving
from agent.core.node_view import NodeView, Setting
from agent.ports import Clock, StartError

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0  # as kubelet
_FOR_ALL = {"/healthz", "/healthz/ping"}  # what a kubelet has here, and in its words
_NOT_TOLD = (
    "Ask for this from this machine, by a loopback address or as localhost; --status-page=all tells others, too."
)


class HealthServer:
    """Listens on 10248 as a kubelet does; here /healthz knows more than that the process is there."""

    def __init__(
        self,
        serving: Serving,
        *,
        clock: Clock,
        node_name: str = "",
        loops: Sequence[str] = (),
        faults: Callable[[], Mapping[str, str]] = dict,
        settings: Sequence[Setting] = (),
        observe: Observe = lambda _name, _well: None,
    ) -> None:
        self._serving = serving
        self._clock = clock
        self._view: Callable[[], NodeView] = lambda: NodeView(node_name=node_name)
        self._loops, self._faults, self._observe = loops, faults, observe
        self._page = Page(settings)
        self._log = LimitedLog(log, clock)
        self._fault = ""

    def follow(self, view: Callable[[], NodeView]) -> None:
        """From now on, show this."""
        self._view = view

    async def run(self) -> None:
        """Serve forever; while somebody else has the port, try again, as a kubelet does."""
        while self._serving.healthz_port:
            entrance = self._entrance()
            if entrance is None:
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            listener = Listener(entrance, self._answer, clock=self._clock)
            try:
                await listener.run()
            finally:
                await listener.close()

    def _entrance(self) -> socket | None:
        address, port = self._serving.healthz_bind_address, self._serving.healthz_port
        try:
            return listen(address, port, flag="--healthz-port, or 0 for none")
        except StartError as error:
            if str(error) != self._fault:  # said once, not every five seconds
                self._fault = str(error)
                log.error("Failed to start healthz server, will retry", {"err": error})
            return None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answered(request)
        except Exception as error:
            self._log.unexpected("Unable to answer a request", {"path": request.path}, error)
            return fault("500 Internal Server Error", status=500)

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._handlers.get(request.path)
        if handler is None:
            return not_found()
        if request.path not in _FOR_ALL and not self._is_told(request):
            return fault(_NOT_TOLD, status=403)
        return await handler(request)

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        checks: dict[str, Check] = {"ping": lambda: None}
        checks |= {loop: partial(self._fault_of, loop) for loop in self._loops}
        health = healthz_handlers(checks, telling=self._is_told, observe=self._observe)
        return {**health, "/": self._show} if self._serving.status_page != "none" else health

    def _is_told(self, request: web.BaseRequest) -> bool:
        """Whether who asks is told more than a kubelet tells on this port."""
        who = self._serving.status_page
        return who != "none" and _is_asked_by_address(request) and (who == "all" or _is_local(request))

    def _fault_of(self, loop: str) -> str | None:
        return self._faults().get(loop)

    async def _show(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
            return plain("405: Method Not Allowed", status=405, allow="GET, HEAD")
        html = self._page.html(self._view())
        body = html.encode(errors="replace")
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=self._page.headers())


def _is_asked_by_address(request: web.BaseRequest) -> bool:
    """Whether the client knows where we are; a name may be one that somebody's web site made to point here."""
    told = request.headers.get(hdrs.HOST)
    if told is None:
        return True  # no browser leaves it out
    host = told.rpartition("]")[0].removeprefix("[") or told.partition(":")[0]
    if host == "localhost":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_local(request: web.BaseRequest) -> bool:
    """Whether the client is on this machine, and came by a loopback address."""
    try:
        peer = ip_address(request.remote or "")
    except ValueError:
        return False
    return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback
