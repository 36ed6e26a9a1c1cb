"""Endpoints about the node itself: pods, stats, metrics, settings, and debugging."""

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from io import StringIO

from aiohttp import hdrs, web

from agent import klog
from agent.adapters.server.responses import (
    JSON_TYPE,
    METRICS_TYPE,
    encode_json,
    http_error,
    json_response,
    stream_response,
    text_response,
)
from agent.adapters.server.sources import Sources, UsageSources
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.model import Object
from agent.core.quantity import parse_uint
from agent.ports import Clock

_MAX_BODY_BYTES = 64
_BODY_SECONDS = 5.0
_WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
_PATHS = "/configz /debug /flagz /healthz /metrics"

Parameters = Mapping[str, str]
"""What the variables of a route's path stand for in a request."""

Endpoint = Callable[[web.BaseRequest, Parameters], Awaitable[web.StreamResponse]]


class NodeEndpoints:
    """Serves what the sources return, in a kubelet's forms."""

    def __init__(self, sources: Sources, clock: Clock) -> None:
        self._sources = sources
        self._clock = clock

    async def pods(self, request: web.BaseRequest, _parameters: Parameters) -> web.StreamResponse:
        """Return the pods that are bound to this node."""
        return await stream_response(request, _pod_list(self._sources.pods()), content_type=JSON_TYPE)

    async def running_pods(self, request: web.BaseRequest, _parameters: Parameters) -> web.StreamResponse:
        """Return the pods that have containers: none."""
        return await stream_response(request, _pod_list(()), content_type=JSON_TYPE)

    def summary(self, usage: UsageSources) -> Endpoint:
        """Return an endpoint for usage as a stats/v1alpha1 Summary."""

        async def stats_summary(request: web.BaseRequest, _parameters: Parameters) -> web.StreamResponse:
            only_cpu_and_memory = request.query.getall("only_cpu_and_memory", []) == ["true"]
            node, pods = await usage.summary(only_cpu_and_memory)
            return await stream_response(request, _summary(node, pods), content_type=JSON_TYPE)

        return stats_summary

    async def configz(self, _request: web.BaseRequest, _parameters: Parameters) -> web.Response:
        """Return the settings in effect."""
        return json_response(self._sources.configz, nosniff=True)

    def exposition(self, source: Callable[[], Awaitable[bytes]]) -> Endpoint:
        """Return an endpoint that Prometheus can scrape."""

        async def metrics(_request: web.BaseRequest, _parameters: Parameters) -> web.Response:
            headers = {
                hdrs.CONTENT_TYPE: METRICS_TYPE,
                "Process-Start-Time-Unix": str(int(self._sources.started.timestamp())),
            }
            return web.Response(body=await source(), headers=headers)

        return metrics

    async def flagz(self, request: web.BaseRequest, _parameters: Parameters) -> web.Response:
        """Return the flags as they were set, or their defaults."""
        lines = [f"{name}:{value}\n" for name, value in sorted(self._sources.flagz.items())]
        return _zpage(request, "flagz", "".join(lines))

    async def statusz(self, request: web.BaseRequest, _parameters: Parameters) -> web.Response:
        """Return which versions run here, and since when."""
        lines = {
            "Started": f"{self._sources.started:%a %b %d %H:%M:%S UTC %Y}",
            "Up": _duration(self._clock.now() - self._sources.started),
            "Python version": platform.python_version(),
            "Binary version": KUBELET_VERSION.removeprefix("v"),
            "Emulation version": KUBELET_VERSION.removeprefix("v").rpartition(".")[0],
            "Paths": _PATHS,
        }
        return _zpage(request, "statusz", "\n" + "".join(f"{name}: {value}\n" for name, value in lines.items()))

    async def profile(self, _request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Return one of the two Go profiles that mean something here: the command line, or the stacks of all tasks."""
        name = parameters["subpath"].rstrip("/")
        if name == "cmdline":
            return _nosniff_response("\0".join([sys.executable, *sys.argv]))
        if name == "goroutine":
            return _nosniff_response(_stacks(asyncio.all_tasks()))
        return _nosniff_response("Unknown profile\n", status=404)

    async def verbosity(self, request: web.BaseRequest, _parameters: Parameters) -> web.Response:
        """Set how much is logged until the next start or reload."""
        if request.method != hdrs.METH_PUT:
            return _nosniff_response("unsupported http method\n", status=406, charset=None)
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                text = (await request.content.read(_MAX_BODY_BYTES)).decode(errors="replace")
        except TimeoutError:
            return http_error("the body did not come", status=408)
        try:
            klog.set_verbosity(parse_uint(text, bits=32))
        except ValueError as error:
            return _nosniff_response(f"{error}\n", status=400, charset=None)
        return _nosniff_response(f"successfully set klog.logging.verbosity to {text}\n", charset=None)


def disabled(reason: str) -> Endpoint:
    """Return an endpoint that answers 405, for one that the settings switch off."""

    async def refuse(_request: web.BaseRequest, _parameters: Parameters) -> web.Response:
        return http_error(reason, status=405)

    return refuse


def _pod_list(pods: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a PodList, pod by pod."""
    before, end = b"[", b"null}\n"
    yield b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":'
    for pod in pods:
        yield before
        yield pod
        before, end = b",", b"]}\n"
    yield end


def _summary(summary: Object, pods: Iterable[Object]) -> Iterator[bytes]:
    """Yield the Summary, indented as a kubelet does it, pod by pod."""
    before, end = b"\n  ", b"]\n}"
    yield encode_json(summary, indent=1).removesuffix(b"\n}") + b',\n "pods": ['
    for pod in pods:
        yield before
        yield encode_json(pod, indent=1).replace(b"\n", b"\n  ")
        before, end = b",\n  ", b"\n ]\n}"
    yield end


def _nosniff_response(text: str, *, status: int = 200, charset: str | None = "utf-8") -> web.Response:
    kind = "text/plain" if charset is None else f"text/plain; charset={charset}"
    headers = {hdrs.CONTENT_TYPE: kind, "X-Content-Type-Options": "nosniff"}
    return web.Response(body=text.encode(), status=status, headers=headers)


def _zpage(request: web.BaseRequest, name: str, text: str) -> web.Response:
    accept = request.headers.get(hdrs.ACCEPT, "*/*")
    if not any(kind.partition(";")[0].strip() in {"*/*", "text/*", "text/plain"} for kind in accept.split(",")):
        return json_response(_NOT_ACCEPTABLE, indent=2, status=406)
    return text_response(f"\nkubelet {name}\n{_WARNING}\n{text}")


_NOT_ACCEPTABLE: Object = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "only the following media types are accepted: application/json, application/yaml, text/plain",
    "reason": "NotAcceptable",
    "code": 406,
}


def _duration(elapsed: timedelta) -> str:
    minutes, seconds = divmod(int(elapsed.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} hr {minutes:02d} min {seconds:02d} sec"


def _stacks(tasks: set["asyncio.Task[object]"]) -> str:
    text = StringIO()
    for task in sorted(tasks, key=lambda task: task.get_name()):
        text.write(f"task {task.get_name()}:\n")
        task.print_stack(file=text)
    return text.getvalue()
