"""The HTTP of a connection: aiohttp's protocol, and what Go's net/http rejects before any handler sees it."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

from aiohttp import EMPTY_PAYLOAD, HttpVersion10, HttpVersion11, StreamReader, hdrs, web, web_protocol
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from agent.adapters.server.connection import READ_BYTES, release_frames
from agent.adapters.server.responses import SERVER, text_response
from agent.klog import V4

log = logging.getLogger(__name__)

_MAX_HEADERS = 64
_MAX_HEAD_BYTES = 16 * 1024
_MAX_PIPELINED = 2  # requests that are parsed before the one before them is answered
_LINGER_SECONDS = 2.0  # for the rest of a body that nobody reads
_MAX_CONTENT_LENGTH = 2**63 - 1

INVALID_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9!$%&'()*+,\-.:;=\[\]_~]*")  # httpguts.ValidHostHeader
_REQUEST_LINE = re.compile(rb"[^ \r\n]+ [^ \r\n]+ HTTP/")  # aiohttp also takes RTSP, and a line without a version
_FORBIDDEN_TRAILERS = {"transfer-encoding", "trailer", "content-length"}
_UNPARSABLE = b"\0"  # the parser rejects it anywhere in a header

# aiohttp parses 32 requests ahead, whatever their size.
web_protocol.MAX_MSG_QUEUE_SIZE = _MAX_PIPELINED

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request of any method, as Go's http.Handler does."""


class EarlyResponse(NamedTuple):
    """The response to a request that no handler sees."""

    status: int
    text: str


_EARLY_RESPONSE = web.RequestKey("rejection", EarlyResponse)

_BAD_REQUEST = EarlyResponse(400, "400 Bad Request")
_BAD_HOST = EarlyResponse(400, "400 Bad Request: malformed Host header")
# Go has 505 and 501 for these two. A 5xx is for faults of ours: whoever counts them must not be misled by a stranger.
_BAD_VERSION = EarlyResponse(400, "400 Bad Request: unsupported protocol version")
_BAD_ENCODING = EarlyResponse(400, "400 Bad Request: unsupported transfer encoding")
_BAD_EXPECTATION = EarlyResponse(417, "")


def _rejections(message: RawRequestMessage) -> Iterator[EarlyResponse]:
    """Yield what net/http would reject the request for, in its order."""
    headers, version = message.headers, message.version
    if version not in {HttpVersion10, HttpVersion11}:
        yield _BAD_VERSION
    if INVALID_ESCAPE.search(message.path.partition("?")[0]):
        yield _BAD_REQUEST
    # net/http: transferReader.parseTransferEncoding, which ignores the header in HTTP/1.0
    if version == HttpVersion11 and headers.get(hdrs.TRANSFER_ENCODING, "chunked").lower() != "chunked":
        yield _BAD_ENCODING
    if int(headers.get(hdrs.CONTENT_LENGTH, "0")) > _MAX_CONTENT_LENGTH:
        yield _BAD_REQUEST
    if _FORBIDDEN_TRAILERS & {name.strip().lower() for name in headers.get(hdrs.TRAILER, "").split(",")}:
        yield _BAD_REQUEST
    if not _HOST.fullmatch(headers.get(hdrs.HOST, "")):
        yield _BAD_HOST
    if headers.get(hdrs.EXPECT, "100-continue").lower() != "100-continue":
        yield _BAD_EXPECTATION


def _parser_rejection(message: str) -> EarlyResponse:
    """Return how net/http rejects what aiohttp's parser could not read, from the parser's error message."""
    line = message.partition("\n")[0]  # below it is what the client sent
    return _BAD_ENCODING if "Transfer-Encoding" in line and "Content-Length" not in line else _BAD_REQUEST


class HttpProtocol(RequestHandler):
    """aiohttp's protocol of one connection; it answers what is no HTTP as a kubelet does, without a traceback."""

    __slots__ = ("_first_line", "_head_bytes", "_last_body", "_on_flow_control")

    def __init__(self, *arguments: Any, on_flow_control: Callable[[RequestHandler], None], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._on_flow_control = on_flow_control
        self._first_line: bytes | None = b""  # of the first request, until it is complete
        self._head_bytes = 0  # of a request whose header has not ended yet, at most
        self._last_body = EMPTY_PAYLOAD  # of the request before that

    def data_received(self, data: bytes) -> None:
        """Parse the data once the first line is complete. Rejects an invalid first line and an endless header."""
        if self._first_line is not None:
            data = self._first_line + data
            if b"\n" not in data and len(data) <= _MAX_HEAD_BYTES:
                self._first_line = data
                return
            self._first_line = None
            if not _REQUEST_LINE.match(data):
                data = _UNPARSABLE
        count = self._request_count
        super().data_received(data)
        if self._request_count > count:
            self._head_bytes = 0
            self._last_body = self._messages[-1][1]
        elif self._last_body.is_eof():
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                super().data_received(_UNPARSABLE)

    def pause_writing(self) -> None:
        """Stop writing: the client reads more slowly than we write."""
        super().pause_writing()
        self._on_flow_control(self)

    def resume_writing(self) -> None:
        """Write again: the client has read what was buffered."""
        super().resume_writing()
        self._on_flow_control(self)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that failed or cannot be parsed; the connection ends with it."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("Unable to answer a request", {"path": request.path}, exc_info=exc)
            rejection = EarlyResponse(status, f"{status} {HTTPStatus(status).phrase}")
        else:
            log.log(V4, "Malformed request", {"address": request.remote, "err": message})
            rejection = _parser_rejection(message or "")
        release_frames(exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer has been sent already")
        response = text_response(rejection.text, status=rejection.status)
        response.force_close()
        return _with_server_header(response)


class HttpServer(web.Server):
    """Makes the protocol of each connection, and reports when a connection has ended."""

    def __init__(
        self,
        handler: Handler,
        *,
        keepalive_seconds: float,
        on_flow_control: Callable[[RequestHandler], None],
        on_lost: Callable[[RequestHandler], None],
    ) -> None:
        super().__init__(handler, request_factory=_request)
        self._keepalive_seconds = keepalive_seconds
        self._on_flow_control = on_flow_control
        self._on_lost = on_lost

    def __call__(self) -> HttpProtocol:
        """Return the protocol of a new connection."""
        return HttpProtocol(
            self,
            loop=asyncio.get_running_loop(),
            on_flow_control=self._on_flow_control,
            access_log=None,
            keepalive_timeout=self._keepalive_seconds,
            lingering_time=_LINGER_SECONDS,
            max_headers=_MAX_HEADERS,
            max_line_size=_MAX_HEAD_BYTES,
            max_field_size=_MAX_HEAD_BYTES,
            read_bufsize=READ_BYTES,
            auto_decompress=False,
        )

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget the connection, and report that it has ended."""
        super().connection_lost(handler, exc)
        self._on_lost(handler)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Return aiohttp's request, which carries its rejection if net/http would reject it."""
    rejection = next(_rejections(message), None)
    if rejection:  # a response has the version of its request, and cannot be written in every version
        message = message._replace(version=HttpVersion11, should_close=True)
    request = web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())
    if rejection:
        request[_EARLY_RESPONSE] = rejection
    return request


def guarded(handler: Handler) -> Handler:
    """Return a handler for all requests; the given one sees those that net/http would not reject."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if early := request.get(_EARLY_RESPONSE):
            return _with_server_header(text_response(early.text, status=early.status))
        return _with_server_header(await handler(request))

    return answer


def _with_server_header(response: web.StreamResponse) -> web.StreamResponse:
    """Set the Server header: aiohttp's default shows everybody its version, and Python's."""
    if not response.prepared:
        response.headers[hdrs.SERVER] = SERVER
    return response
