"""What a kubelet serves under which path, and by which methods."""

from functools import partial

from aiohttp import web

from agent.adapters.metrics.exposition import exposition
from agent.adapters.metrics.process import started
from agent.adapters.server.containers import ContainerEndpoints
from agent.adapters.server.endpoints import Endpoint, NodeEndpoints, Parameters, disabled
from agent.adapters.server.healthz import Check, Handler, healthz_handlers
from agent.adapters.server.logs import LogFiles
from agent.adapters.server.metrics import ServerMetrics
from agent.adapters.server.replies import JSON
from agent.adapters.server.sources import Sources
from agent.core.config import Serving
from agent.core.routing import Route, RouteTable, Service
from agent.ports import Clock

_POST, _EITHER = ("POST",), ("GET", "POST")
_POD = "/{podNamespace}/{podID}"
_CONTAINER, _CONTAINER_BY_UID = f"{_POD}/{{containerName}}", f"{_POD}/{{uid}}/{{containerName}}"
_LOGS, _PROFILES, _RUNNING_PODS = "/logs/", "/debug/pprof/", "/runningpods/"
_DEBUGGING = ("/run/", "/exec/", "/attach/", "/portForward/", "/containerLogs/", _RUNNING_PODS, _PROFILES, _LOGS)


def full_table(
    serving: Serving, node: NodeEndpoints, sources: Sources, metrics: ServerMetrics, clock: Clock
) -> RouteTable[Endpoint]:
    """Everything, for those who may."""
    if not serving.debugging_handlers:
        return open_table(node, sources, metrics)
    exact = _exact(node, sources, metrics) | {
        "/configz": node.configz,
        "/flagz": node.flagz,
        "/statusz": node.statusz,
        "/debug/flags/v": node.verbosity if serving.debug_flags else disabled("flags endpoint is disabled."),
    }
    services = [*_services(node), *_container_services(ContainerEndpoints(sources.pod, clock))]
    services.append(Service(_RUNNING_PODS, (Route("", node.running_pods),), JSON))
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


def open_table(node: NodeEndpoints, sources: Sources, metrics: ServerMetrics) -> RouteTable[Endpoint]:
    """What is left on the read-only port, and where debugging is off."""
    trees = dict.fromkeys(_DEBUGGING, disabled("Debug endpoints are disabled."))
    return RouteTable(exact=_exact(node, sources, metrics), trees=trees, services=_services(node))


def _exact(node: NodeEndpoints, sources: Sources, metrics: ServerMetrics) -> dict[str, Endpoint]:
    async def slis() -> bytes:
        return exposition([*metrics.health(), *started()])

    health = healthz_handlers(_checks(sources), observe=metrics.observe_health)
    return {
        **{path: partial(_without_parameters, handler) for path, handler in health.items()},
        "/metrics": node.exposition(sources.metrics),
        "/metrics/cadvisor": node.exposition(sources.cadvisor_metrics),
        "/metrics/resource": node.exposition(sources.resource_metrics),
        "/metrics/probes": node.exposition(sources.probe_metrics),
        "/metrics/slis": node.exposition(slis),
    }


def _services(node: NodeEndpoints) -> list[Service[Endpoint]]:
    return [
        Service("/pods", (Route("", node.pods),), JSON),
        Service("/stats/", (Route("/summary", node.summary, _EITHER),), JSON),
    ]


def _container_services(containers: ContainerEndpoints) -> list[Service[Endpoint]]:
    def service(root: str, endpoint: Endpoint, methods: tuple[str, ...], *paths: str) -> Service[Endpoint]:
        return Service(root, tuple(Route(path, endpoint, methods) for path in paths))

    return [
        service("/run", containers.run, _POST, _CONTAINER, _CONTAINER_BY_UID),
        service("/exec", containers.attach, _EITHER, _CONTAINER, _CONTAINER_BY_UID),
        service("/attach", containers.attach, _EITHER, _CONTAINER, _CONTAINER_BY_UID),
        service("/portForward", containers.port_forward, _EITHER, _POD, f"{_POD}/{{uid}}"),
        service("/containerLogs", containers.logs, ("GET",), _CONTAINER),
        Service("/checkpoint/", (Route(_CONTAINER, containers.checkpoint, _POST),), JSON),
    ]


def _checks(sources: Sources) -> dict[str, Check]:
    """A kubelet's four; its sync loop is, here, all loops that keep the node alive."""

    def loops() -> str | None:
        return "; ".join(f"{loop}: {fault}" for loop, fault in sources.faults().items()) or None

    def well() -> None:
        return None

    return {"ping": well, "log": well, "syncloop": loops, "device-plugin": well}


async def _without_parameters(handler: Handler, request: web.BaseRequest, _: Parameters) -> web.StreamResponse:
    return await handler(request)
