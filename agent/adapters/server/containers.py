"""Endpoints about containers: requests are checked as by a kubelet, then answered that no container runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from aiohttp import hdrs, web

from agent.adapters.server.endpoints import Parameters
from agent.adapters.server.responses import abort_on_error, text_response
from agent.core.access import is_websocket
from agent.core.container_log import Line, LogOptions, LogUnavailable, RunLog, run_log, same_run_log, selected
from agent.core.model import PodObject
from agent.core.pods.accessors import placed_containers
from agent.core.quantity import parse_int, parse_uint
from agent.core.times import parse_time
from agent.klog import quoted
from agent.ports import Clock

_NOTHING_RUNS = "no containers run on this node: it is a fake-kubelet"
_STREAMS = ("input", "output", "error")
_LOOK_SECONDS = 2.0  # between two looks at the pod of a log that is followed
_MAX_SINCE_SECONDS = 50 * 365 * 86400  # before any container


class ContainerEndpoints:
    """containerLogs, exec, attach, portForward, run and checkpoint."""

    def __init__(
        self, find: Callable[[str, str], PodObject | None], clock: Clock, *, understands_commands: bool
    ) -> None:
        self._find = find
        self._clock = clock
        self._understands_commands = understands_commands
        self._decoding = asyncio.Lock()

    async def logs(self, request: web.BaseRequest, parameters: Parameters) -> web.StreamResponse:
        """Return the log of a container, or stream it while its plain command runs and the request follows."""
        try:
            options = _log_options(request.query, self._clock.now())
        except _InvalidQuery as error:
            return text_response(error.text, status=error.status)
        name, container = parameters["podID"], parameters["containerName"]
        pod = await self._pod(parameters)
        if pod is None:
            return text_response(f"pod {quoted(name)} does not exist", status=404)
        if container not in _containers(pod):
            return text_response(f"container {quoted(container)} not found in pod {quoted(name)}", status=404)
        try:
            run = run_log(pod, container, previous=options.previous, understands_commands=self._understands_commands)
        except LogUnavailable as reason:
            return text_response(str(reason), status=400)
        if run.goes_on and _is_set(request.query, "follow"):
            return await self._follow(request, parameters, run, options)
        text = selected(run.until(self._clock.now()), options)
        return text_response(text.decode(errors="ignore"))

    async def _follow(
        self, request: web.BaseRequest, parameters: Parameters, run: RunLog, options: LogOptions
    ) -> web.StreamResponse:
        """Send the lines of a run as they are printed, until it ends or the client leaves."""
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "text/plain; charset=utf-8"})
        await response.prepare(request)
        bytes_left, count = options.limit_bytes, 0
        with abort_on_error(request):
            while True:
                printed = run.until(self._clock.now())
                text = selected(printed[count:], options._replace(limit_bytes=bytes_left))
                if text:
                    await response.write(text)
                options, count = options._replace(tail_lines=None), len(printed)
                bytes_left = None if bytes_left is None else bytes_left - len(text)
                if not run.goes_on or bytes_left == 0 or request.transport is None or request.transport.is_closing():
                    return response
                await self._clock.sleep(self._pause_seconds(run.lines[count:]))
                pod = await self._pod(parameters)
                run = (pod and same_run_log(pod, parameters["containerName"], run.began_at)) or run._replace(
                    lines=printed, goes_on=False
                )

    def _pause_seconds(self, lines: Sequence[Line]) -> float:
        """Return when to look again: with the next line, and until then now and then whether the run has ended."""
        wait = (lines[0].at - self._clock.now()).total_seconds() if lines else _LOOK_SECONDS
        return min(max(0.0, wait), _LOOK_SECONDS)

    async def attach(self, request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Attach to the streams of a container; exec uses the same checks."""
        streams = [name for name in _STREAMS if request.query.get(name) == "1"]
        if not streams or (streams == ["error"] and request.query.get("tty") == "1"):
            return text_response("you must specify at least 1 of stdin, stdout, stderr", status=400)
        return await self._in_container(parameters)

    async def run(self, _: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Run a command in a container."""
        return await self._in_container(parameters)

    async def port_forward(self, request: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Forward a port of a pod."""
        if error := _ports_error(request):
            return text_response(error, status=400)
        pod = await self._pod(parameters)
        if pod is None:
            return text_response("pod does not exist", status=404)
        if parameters.get("uid", pod["metadata"].get("uid")) != pod["metadata"].get("uid"):
            return text_response("pod not found", status=404)
        return text_response(_NOTHING_RUNS, status=500)

    async def checkpoint(self, _: web.BaseRequest, parameters: Parameters) -> web.Response:
        """Write a checkpoint of a container."""
        pod, container = await self._pod(parameters), parameters["containerName"]
        if pod is None:
            return text_response("pod does not exist", status=404)
        if container not in _containers(pod):
            return text_response(f"container {container} does not exist", status=404)
        where = f"{parameters['podNamespace']}/{parameters['podID']}/{container}"
        return text_response(f"checkpointing of {where} failed ({_NOTHING_RUNS})", status=500)

    async def _in_container(self, parameters: Parameters) -> web.Response:
        pod, container = await self._pod(parameters), parameters["containerName"]
        if pod is None:
            return text_response("pod does not exist", status=404)
        if container not in _containers(pod):
            return text_response(f"container not found ({quoted(container)})", status=500)
        return text_response(_NOTHING_RUNS, status=500)

    async def _pod(self, parameters: Parameters) -> PodObject | None:
        """Return the pod that a path names. A pod may be large: one pod is decoded per turn of the event loop."""
        async with self._decoding:
            await asyncio.sleep(0)
            return self._find(parameters["podNamespace"], parameters["podID"])


def _containers(pod: PodObject) -> set[str]:
    return {container["name"] for _, container in placed_containers(pod)}


class _InvalidQuery(Exception):
    """A query that the checks of PodLogOptions reject."""

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
        lines, seconds, limit_bytes = (
            parse_int(options[name], bits=64) if name in options else None
            for name in ("tailLines", "sinceSeconds", "limitBytes")
        )
        since = _time(options["sinceTime"]) if "sinceTime" in options else None
    except ValueError as error:
        raise _InvalidQuery(400, "Unable to decode query.") from error
    stream = options.get("stream", "All")
    if (
        (lines is not None and (lines < 0 or stream != "All"))
        or (seconds is not None and (seconds < 1 or since))
        or (limit_bytes is not None and limit_bytes < 1)
        or stream not in {"All", "Stdout", "Stderr"}
    ):
        raise _InvalidQuery(422, "Invalid request.")
    if seconds is not None:
        since = now - timedelta(seconds=min(seconds, _MAX_SINCE_SECONDS))
    return LogOptions(lines, since, limit_bytes, _is_set(options, "timestamps"), _is_set(options, "previous"))


def _time(text: str) -> datetime:
    """Read an RFC 3339 time; an empty text, or `null`, is the beginning of time."""
    if text in {"", "null"}:
        return datetime.min.replace(tzinfo=UTC)
    return parse_time(text)


def _is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0").lower() not in {"0", "false"}


def _ports_error(request: web.BaseRequest) -> str:
    """Return what is wrong with the ports of a WebSocket request; other protocols name them later."""
    if not is_websocket(request.headers.get(hdrs.UPGRADE, ""), request.headers.getall(hdrs.CONNECTION, ())):
        return ""
    protocols = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "")
    if "SPDY/3.1+portforward.k8s.io" in protocols:
        return ""
    if "port" not in request.query:
        return 'query parameter "port" is required'
    return next(filter(None, map(_port_error, request.query.getall("port"))), "")


def _port_error(text: str) -> str:
    for port in text.split(","):
        try:
            if parse_uint(port, bits=16) == 0:
                return f"port {quoted(text)} must be > 0"
        except ValueError as error:
            return f"unable to parse {quoted(text)} as a port: {error}"
    return ""
