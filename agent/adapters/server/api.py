"""The kubelet's API: which path has which endpoint, and each request in the order in which a kubelet decides."""

import logging
from functools import partial
from typing import Protocol
from urllib.parse import quote_from_bytes

from aiohttp import hdrs, web

from agent.adapters.metrics.exposition import exposition
from agent.adapters.metrics.kubelet_metrics import process_start_time
from agent.adapters.server.auth_filter import AuthFilter, Caller, Denial
from agent.adapters.server.containers import ContainerEndpoints
from agent.adapters.server.endpoints import Endpoint, NodeEndpoints, Parameters, disabled
from agent.adapters.server.healthz import Check, healthz_handlers
from agent.adapters.server.http_protocol import INVALID_ESCAPE, Handler
from agent.adapters.server.log_files import LogFiles
from agent.adapters.server.responses import (
    JSON_TYPE,
    http_error,
    page_not_found,
    temporary_redirect,
    text_response,
)
from agent.adapters.server.sources import Sources, UsageSources
from agent.adapters.server.telemetry import RateLimitedLog, ServerMetrics
from agent.adapters.server.tls import verified_chain
from agent.core.access import is_websocket
from agent.core.config import Serving
from agent.core.routing import NoRoute, Redirect, Route, RouteMatch, RouteTable, Service, ServiceError, unescaped
from agent.ports import Clock

log = logging.getLogger(__name__)

_ASCII = bytes(range(0x21, 0x7F))
_POST = ("POST",)
_GET_OR_POST = ("GET", "POST")
_POD = "/{podNamespace}/{podID}"
_CONTAINER = f"{_POD}/{{containerName}}"
_CONTAINER_BY_UID = f"{_POD}/{{uid}}/{{containerName}}"
_LOGS, _PROFILES, _RUNNING_PODS = "/logs/", "/debug/pprof/", "/runningpods/"
_DEBUGGING = ("/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", _RUNNING_PODS, _PROFILES, _LOGS)


class Routes(Protocol):
    """Which endpoint each path has."""

    def find(
        self, raw_path: str, method: str, accept: str = ""
    ) -> NoRoute | Redirect | ServiceError | RouteMatch[Endpoint]:
        """Return what a request with this path, still escaped, and this method is for."""


class KubeletApi:
    """Answers requests as a kubelet does: it checks the path first, then the caller, then the method."""

    def __init__(
        self,
        table: Routes,
        *,
        metrics: ServerMetrics,
        clock: Clock,
        auth_filter: AuthFilter | None = None,
    ) -> None:
        self._table = table
        self._auth_filter = auth_filter
        self._metrics = metrics
        self._server_type = "readwrite" if auth_filter else "readonly"
        self._log = RateLimitedLog(log, clock)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            with self._metrics.counted(request.method, request.path, self._server_type):
                if INVALID_ESCAPE.search(request.rel_url.raw_path):
                    return text_response("400 Bad Request", status=400)
                return await self._route(request)
        except (web.RequestPayloadError, ConnectionError):  # the body makes no sense, or the client has left
            return text_response("400 Bad Request", status=400)
        except Exception as error:
            self._log.unexpected("Unable to answer a request", {"path": request.path}, error)
            return http_error("500 Internal Server Error", status=500)

    async def _route(self, request: web.BaseRequest) -> web.StreamResponse:
        path, query = _escaped(request.rel_url.raw_path), _escaped(request.rel_url.raw_query_string)
        match = self._table.find(path, request.method, request.headers.get(hdrs.ACCEPT, ""))
        if isinstance(match, NoRoute):
            return page_not_found()
        if isinstance(match, Redirect):
            return temporary_redirect(f"{match.path}?{query}" if query else match.path, request.method)
        if denial := await self._denial(request, path):
            return text_response(denial.text, status=denial.status)
        if isinstance(match, ServiceError):
            return text_response(match.text, status=match.status, allow=match.allow)
        return await self._call(match, request)

    async def _call(self, match: RouteMatch[Endpoint], request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await match.endpoint(request, match.parameters)
        except ConnectionError:
            raise
        except (OSError, TimeoutError) as error:
            self._log.log(logging.ERROR, "HTTP InternalServerError serving", {"err": error, "request": request.path})
            return text_response(f"Internal Error: {error}", status=500)

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
        # Unescaped as in the table: the path that is authorized must be the path that is served.
        return await self._auth_filter.denial(caller, request.method, unescaped(path))


def _escaped(text: str) -> str:
    """Return a path or query as Go would write it: bytes beyond ASCII, which nobody should send, as escapes."""
    return text if text.isascii() else quote_from_bytes(text.encode(errors="surrogateescape"), safe=_ASCII)


def full_table(serving: Serving, sources: Sources, metrics: ServerMetrics, clock: Clock) -> RouteTable[Endpoint]:
    """Return every path, for the port with authentication and authorization."""
    if not serving.debugging_handlers:
        return read_only_table(sources, metrics, clock)
    node = NodeEndpoints(sources, clock)
    exact = _exact_paths(node, sources, metrics) | {
        "/configz": node.configz,
        "/flagz": node.flagz,
        "/statusz": node.statusz,
        "/debug/flags/v": node.verbosity if serving.debug_flags else disabled("flags endpoint is disabled."),
    }
    containers = ContainerEndpoints(sources.pod, clock, understands_commands=sources.understands_commands)
    services = [*_services(node, sources.usage), *_container_services(containers)]
    services.append(Service(_RUNNING_PODS, (Route("", node.running_pods),), JSON_TYPE))
    trees = {}
    if serving.system_logs:
        files = LogFiles(sources.log_directory)
        services.append(Service(_LOGS, (Route("", files.answer), Route("/{logpath:*}", files.answer))))
    else:
        trees[_LOGS] = disabled("logs endpoint is disabled.")
    if serving.profiling:
        services.append(Service(_PROFILES, (Route("/{subpath:*}", node.profile),)))
    else:
        trees[_PROFILES] = disabled("profiling endpoint is disabled.")
    return RouteTable(exact=exact, trees=trees, services=services)


def read_only_table(sources: Sources, metrics: ServerMetrics, clock: Clock) -> RouteTable[Endpoint]:
    """Return the paths of the read-only port, which are all where debugging handlers are off."""
    node = NodeEndpoints(sources, clock)
    trees = dict.fromkeys(_DEBUGGING, disabled("Debug endpoints are disabled."))
    return RouteTable(exact=_exact_paths(node, sources, metrics), trees=trees, services=_services(node, sources.usage))


def _exact_paths(node: NodeEndpoints, sources: Sources, metrics: ServerMetrics) -> dict[str, Endpoint]:
    async def slis() -> bytes:
        return exposition([*metrics.health(), *process_start_time()])

    def loops() -> str | None:
        return "; ".join(f"{loop}: {fault}" for loop, fault in sources.faults().items()) or None

    def healthy() -> None:
        return None

    # A kubelet's four; its sync loop is, here, all loops that keep the node alive.
    checks: dict[str, Check] = {"ping": healthy, "log": healthy, "syncloop": loops, "device-plugin": healthy}
    health = healthz_handlers(checks, observe=metrics.observe_health)
    return {
        **{path: partial(_without_parameters, handler) for path, handler in health.items()},
        "/metrics": node.exposition(sources.metrics),
        **_usage_paths(node, sources.usage),
        "/metrics/probes": node.exposition(sources.probe_metrics),
        "/metrics/slis": node.exposition(slis),
    }


def _usage_paths(node: NodeEndpoints, usage: UsageSources | None) -> dict[str, Endpoint]:
    if usage is None:
        return {}
    return {"/metrics/cadvisor": node.exposition(usage.cadvisor), "/metrics/resource": node.exposition(usage.resource)}


async def _without_parameters(handler: Handler, request: web.BaseRequest, _: Parameters) -> web.StreamResponse:
    return await handler(request)


def _services(node: NodeEndpoints, usage: UsageSources | None) -> list[Service[Endpoint]]:
    services: list[Service[Endpoint]] = [Service("/pods", (Route("", node.pods),), JSON_TYPE)]
    if usage:
        services.append(Service("/stats/", (Route("/summary", node.summary(usage), _GET_OR_POST),), JSON_TYPE))
    return services


def _container_services(containers: ContainerEndpoints) -> list[Service[Endpoint]]:
    def service(root: str, endpoint: Endpoint, methods: tuple[str, ...], *paths: str) -> Service[Endpoint]:
        return Service(root, tuple(Route(path, endpoint, methods) for path in paths))

    return [
        service("/run", containers.run, _POST, _CONTAINER, _CONTAINER_BY_UID),
        service("/exec", containers.attach, _GET_OR_POST, _CONTAINER, _CONTAINER_BY_UID),
        service("/attach", containers.attach, _GET_OR_POST, _CONTAINER, _CONTAINER_BY_UID),
        service("/portForward", containers.port_forward, _GET_OR_POST, _POD, f"{_POD}/{{uid}}"),
        service("/containerLogs", containers.logs, ("GET",), _CONTAINER),
        Service("/checkpoint/", (Route(_CONTAINER, containers.checkpoint, _POST),), JSON_TYPE),
    ]
