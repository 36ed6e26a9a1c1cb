"""Health over plain HTTP, for the machine itself: /healthz for programs, the status page at / for people."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from ipaddress import ip_address
from typing import NamedTuple

from aiohttp import hdrs, web

from agent.adapters.server.http_protocol import Handler
from agent.adapters.server.responses import METRICS_TYPE, http_error, page_not_found, text_response
from agent.adapters.server.status_page import StatusPage
from agent.adapters.server.telemetry import RateLimitedLog
from agent.core.config import Serving
from agent.core.fleet_view import FleetView
from agent.core.node_view import NodeView, Setting
from agent.klog import V2, quoted
from agent.ports import Clock

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns None when healthy, else the reason."""

Observe = Callable[[str, bool], None]
"""Is called with the name of each check that was run, and whether it was healthy."""

MayRead = Callable[[web.BaseRequest], bool]
"""Returns whether the client may read why a check failed."""

_FOR_ALL = {"/healthz", "/healthz/ping"}  # what a kubelet has here, and in its words
_FORBIDDEN = (
    "Ask for this from this machine, by a loopback address or as localhost; --status-page=all answers others, too."
)


def healthz_handlers(
    checks: Mapping[str, Check],
    *,
    may_read: MayRead = lambda _: False,
    observe: Observe = lambda _name, _is_healthy: None,
) -> dict[str, Handler]:
    """Return the kubelet's handlers: /healthz with ?verbose and ?exclude=, and /healthz/<name>.

    /healthz withholds the reasons of failures from clients that `may_read` does not accept.
    """
    single: dict[str, Handler] = {f"/healthz/{name}": partial(_single, check) for name, check in checks.items()}
    return {"/healthz": _Healthz(checks, may_read, observe).answer, **single}


class _Healthz(NamedTuple):
    """All checks at once."""

    checks: Mapping[str, Check]
    may_read: MayRead
    observe: Observe

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Return `ok`, with ?verbose a line for each check; a failure is a 500 and always a line for each check."""
        excluded, lines, failed = set(request.query.getall("exclude", ())), [], []
        for name, check in self.checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            reason = check()
            self.observe(name, reason is None)
            if reason is None:
                lines.append(f"[+]{name} ok\n")
            else:
                failed.append(f"[-]{name} failed: {reason}")
                lines.append(f"[-]{name} failed: {reason if self.may_read(request) else 'reason withheld'}\n")
        if unknown := sorted(excluded - self.checks.keys()):
            names = ",".join(map(quoted, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        if failed:
            log.log(V2, "healthz check failed", {"checks": failed})
            return _nosniff_text("".join([*lines, "healthz check failed\n"]), status=500)
        return _nosniff_text("".join([*lines, "healthz check passed\n"]) if "verbose" in request.query else "ok")


async def _exposed(metrics: Callable[[], bytes], _: web.BaseRequest) -> web.Response:
    return web.Response(body=metrics(), headers={hdrs.CONTENT_TYPE: METRICS_TYPE})


async def _single(check: Check, _: web.BaseRequest) -> web.Response:
    reason = check()
    return _nosniff_text("ok") if reason is None else _nosniff_text(f"internal server error: {reason}\n", status=500)


def _nosniff_text(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, headers={"X-Content-Type-Options": "nosniff"})


class HealthPort:
    """Answers on 10248 as a kubelet does; here /healthz also checks the loops that keep the node alive."""

    def __init__(
        self,
        serving: Serving,
        *,
        clock: Clock,
        view: Callable[[], NodeView | FleetView],
        checks: Mapping[str, Check],
        settings: Sequence[Setting],
        observe: Observe,
        metrics: Callable[[], bytes] | None,
    ) -> None:
        self._serving = serving
        self._view = view
        self._checks = checks
        self._observe = observe
        self._metrics = metrics
        self._page = StatusPage(settings)
        self._log = RateLimitedLog(log, clock)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            handler = self._handlers.get(request.path)
            if handler is None:
                return page_not_found()
            if request.path not in _FOR_ALL and not self._may_read(request):
                return http_error(_FORBIDDEN, status=403)
            return await handler(request)
        except Exception as error:
            self._log.unexpected("Unable to answer a request", {"path": request.path}, error)
            return http_error("500 Internal Server Error", status=500)

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        checks: dict[str, Check] = {"ping": lambda: None}
        health = healthz_handlers({**checks, **self._checks}, may_read=self._may_read, observe=self._observe)
        if self._metrics:
            health["/metrics"] = partial(_exposed, self._metrics)
        return {**health, "/": self._show} if self._serving.status_page != "none" else health

    def _may_read(self, request: web.BaseRequest) -> bool:
        """Return whether the client may read more than a kubelet shows on this port."""
        audience = self._serving.status_page
        return audience != "none" and _is_asked_by_address(request) and (audience == "all" or _is_local(request))

    async def _show(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in {hdrs.METH_GET, hdrs.METH_HEAD}:
            return text_response("405: Method Not Allowed", status=405, allow="GET, HEAD")
        body = self._page.html(self._view()).encode(errors="replace")
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=self._page.headers())


def _is_asked_by_address(request: web.BaseRequest) -> bool:
    """Return whether the Host is an address or localhost; a web site may have made another name point here."""
    header = request.headers.get(hdrs.HOST)
    if header is None:
        return True  # no browser leaves it out
    host = header.rpartition("]")[0].removeprefix("[") or header.partition(":")[0]
    if host == "localhost":
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_local(request: web.BaseRequest) -> bool:
    """Return whether the client is on this machine, and came by a loopback address."""
    try:
        peer = ip_address(request.remote or "")
    except ValueError:
        return False
    return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback
