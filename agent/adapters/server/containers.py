"""Endpoints about containers: requests are checked as by a kubelet, then answered that no container runs."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from aiohttp import hdrs, web

from agent.adapters.server.replies import plain
from agent.core.access import is_websocket
from agent.core.container_log import LogOptions, LogUnavailable, container_log
from agent.core.model import PodObject
from agent.core.pods.accessors import placed_containers
from agent.core.quantity import parse_int, parse_uint
from agent.core.times import parse_time
from agent.klog import quoted
from agent.ports import Clock

_NOTHING_RUNS = "no containers run on this node: it is a fake-kubelet"
_STREAMS = ("input", "output", "error")
_LONGEST_SECONDS = 50 * 365 * 86400  # before any container

Parameters = Mapping[str, str]


class ContainerEndpoints:
    """containerLogs, exec, attach, portForward, run and checkpoint."""

    def __init__(self, find: Callable[[str, str], PodObject | None], clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._decoding = asyncio.Lock()

    async def logs(self, request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Return the log of a container."""
        try:
            options = _log_options(request.query, self._clock.now())
        except _Refused as refusal:
            return plain(refusal.text, status=refusal.status)
        name, container = parameters["podID"], parameters["containerName"]
        pod = await self._pod(parameters)
        if pod is None:
            return plain(f"pod {quoted(name)} does not exist", status=404)
        if container not in _containers(pod):
            return plain(f"container {quoted(container)} not found in pod {quoted(name)}", status=404)
        try:
            return plain(container_log(pod, container, options).decode(errors="ignore"))
        except LogUnavailable as reason:
            return plain(str(reason), status=400)

    async def attach(self, request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Attach to the streams of a container; exec uses the same checks."""
        streams = [name for name in _STREAMS if request.query.get(name) == "1"]
        if not streams or (streams == ["error"] and request.query.get("tty") == "1"):
            return plain("you must specify at least 1 of stdin, stdout, stderr", status=400)
        return await self._in_container(parameters)

    async def run(self, _: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Run a command in a container."""
        return await self._in_container(parameters)

    async def port_forward(self, request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Forward a port of a pod."""
        if refusal := _ports_refused(request):
            return plain(refusal, status=400)
        pod = await self._pod(parameters)
        if pod is None:
            return plain("pod does not exist", status=404)
        if parameters.get("uid", pod["metadata"].get("uid")) != pod["metadata"].get("uid"):
            return plain("pod not found", status=404)
        return plain(_NOTHING_RUNS, status=500)

    async def checkpoint(self, _: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Write a checkpoint of a container."""
        pod, container = await self._pod(parameters), parameters["containerName"]
        if pod is None:
            return plain("pod does not exist", status=404)
        if container not in _containers(pod):
            return plain(f"container {container} does not exist", status=404)
        where = f"{parameters['podNamespace']}/{parameters['podID']}/{container}"
        return plain(f"checkpointing of {where} failed ({_NOTHING_RUNS})", status=500)

    async def _in_container(self, parameters: Parameters) -> web.Response:
        pod, container = await self._pod(parameters), parameters["containerName"]
        if pod is None:
            return plain("pod does not exist", status=404)
        if container not in _containers(pod):
            return plain(f"container not found ({quoted(container)})", status=500)
        return plain(_NOTHING_RUNS, status=500)

    async def _pod(self, parameters: Parameters) -> PodObject | None:
        """Return the pod that a path names. A pod may be large: one pod is decoded per turn of the event loop."""
        async with self._decoding:
            await asyncio.sleep(0)
            return self._find(parameters["podNamespace"], parameters["podID"])


def _containers(pod: PodObject) -> set[str]:
    return {container["name"] for _, container in placed_containers(pod)}


class _Refused(Exception):
    """A query that is refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.text = f'{{"message": "{message}"}}'


def _log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Read the query of a log request, with the checks of PodLogOptions."""
    options = dict(query)
    if tail := options.pop("tail", ""):  # the old name of tailLines
        options["tailLines"] = tail
    if tail == "all":
        del options["tailLines"]
    try:
        lines, seconds, most = (
            parse_int(options[name], bits=64) if name in options else None
            for name in ("tailLines", "sinceSeconds", "limitBytes")
        )
        since = _time(options["sinceTime"]) if "sinceTime" in options else None
    except ValueError as error:
        raise _Refused(400, "Unable to decode query.") from error
    stream = options.get("stream", "All")
    if (
        (lines is not None and (lines < 0 or stream != "All"))
        or (seconds is not None and (seconds < 1 or since))
        or (most is not None and most < 1)
        or stream not in {"All", "Stdout", "Stderr"}
    ):
        raise _Refused(422, "Invalid request.")
    if seconds is not None:
        since = now - timedelta(seconds=min(seconds, _LONGEST_SECONDS))
    return LogOptions(lines, since, most, _is_set(options, "timestamps"), _is_set(options, "previous"))


def _time(text: str) -> datetime:
    """Read an RFC 3339 time; an empty text, or `null`, is the beginning of time."""
    if text in {"", "null"}:
        return datetime.min.replace(tzinfo=UTC)
    return parse_time(text)


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0").lower() not in {"0", "false"}


def _ports_refused(request: web.BaseRequest) -> str:
    """Return what is wrong with the ports of a WebSocket request; other protocols name them later."""
    if not is_websocket(request.headers.get(hdrs.UPGRADE, ""), request.headers.getall(hdrs.CONNECTION, ())):
        return ""
    protocols = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "")
    if "SPDY/3.1+portforward.k8s.io" in protocols:
        return ""
    if "port" not in request.query:
        return 'query parameter "port" is required'
    return next(filter(None, map(_port_refused, request.query.getall("port"))), "")


def _port_refused(text: str) -> str:
    for port in text.split(","):
        try:
            if parse_uint(port, bits=16) == 0:
                return f"port {quoted(text)} must be > 0"
        except ValueError as error:
            return f"unable to parse {quoted(text)} as a port: {error}"
    return ""
