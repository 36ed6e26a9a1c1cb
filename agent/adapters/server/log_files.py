"""Serve the host's log files below one directory as Go's http.FileServer does."""

import asyncio
import errno
import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial
from heapq import nsmallest
from html import escape
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from aiohttp import hdrs, web

from agent.adapters.server.responses import SERVER, abort_on_error, http_error, page_not_found, text_response
from agent.core.quantity import parse_int

_CHUNK_BYTES = 64 * 1024
_SNIFF_BYTES = 512
_MAX_NAMES = 10_000
_READ_SECONDS = 10.0  # a request fails if the disk takes longer
_READERS = 2
_INDEX = "index.html"
_TYPES = {".json": "application/json", ".html": "text/html; charset=utf-8", ".gz": "application/gzip"}
_TEXT_TYPE = "text/plain; charset=utf-8"
# Errors that are answered with 404: the path or its file causes them. A kubelet answers some of them with 500.
_NOT_FOUND_ERRORS = {
    *(errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL),
    *(errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP, errno.ENOMEDIUM),
}

T = TypeVar("T")


class _Opened:
    """An open file or directory. It is closed with its last reference: a thread that hangs on a dead disk has one."""

    def __init__(self, path: Path) -> None:
        # O_NONBLOCK: opening a pipe or a device could block forever.
        self.descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        self.status = os.fstat(self.descriptor)
        if not (stat.S_ISREG(self.status.st_mode) or stat.S_ISDIR(self.status.st_mode)):
            raise FileNotFoundError(errno.ENOENT, "neither a file nor a directory")

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    @property
    def modified(self) -> datetime | None:
        """When it was changed last; None for a time that datetime cannot represent."""
        try:
            return datetime.fromtimestamp(int(self.status.st_mtime), UTC)
        except (OSError, OverflowError, ValueError):
            return None

    def part(self, start: int, size: int) -> bytes:
        return os.pread(self.descriptor, size, start)

    def names(self) -> list[str]:
        """Return the names in a directory, sorted; those of directories end with a slash."""
        with os.scandir(self.descriptor) as entries:
            names = ((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            first = nsmallest(_MAX_NAMES, names)
        return [f"{name}/" if is_directory else name for name, is_directory in first]


class LogFiles:
    """The endpoint /logs/. It follows symbolic links, as a kubelet does, but `..` cannot leave the directory.

    It reads in threads of its own, so that a disk that hangs blocks no other reader.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._readers: ThreadPoolExecutor | None = None

    async def answer(self, request: web.BaseRequest, parameters: Mapping[str, str]) -> web.StreamResponse:
        """Answer with the file, a range of it, or the listing of the directory."""
        # Rooted and normalised, so that `..` cannot leave the directory.
        path = posixpath.normpath(f"/{parameters.get('logpath', '')}")
        if "\0" in path:
            return page_not_found()
        if path.endswith(f"/{_INDEX}"):
            return _redirect("./")
        try:
            opened = await self._read(lambda: _Opened(self._directory / path.lstrip("/")))
        except TimeoutError:
            return http_error("the disk does not answer", status=500)
        except OSError as error:
            return _error_response(error)
        return await self._respond(request, path, opened)

    async def _respond(self, request: web.BaseRequest, path: str, opened: _Opened) -> web.StreamResponse:
        has_slash = request.rel_url.raw_path.endswith("/")
        if opened.is_directory and not has_slash:
            return _redirect(f"{quote(os.fsencode(posixpath.basename(path)))}/")
        if not opened.is_directory and has_slash:
            return _redirect(f"../{quote(os.fsencode(posixpath.basename(path)))}")
        if _is_unchanged(request, opened):
            return web.Response(status=304, headers=_modified(opened))
        if not opened.is_directory:
            return await self._file(request, path, opened)
        try:
            index = await self._read(lambda: _Opened(self._directory / path.lstrip("/") / _INDEX))
        except OSError:
            return await self._listing(opened)
        return await self._file(request, _INDEX, index)

    async def _listing(self, opened: _Opened) -> web.Response:
        names = await self._read(opened.names)
        lines = [f'<a href="{_reference(name)}">{escape(name, quote=True)}</a>\n' for name in names]
        head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n'
        text = f"{head}{''.join(lines)}</pre>\n".encode(errors="replace")
        return web.Response(body=text, content_type="text/html", charset="utf-8", headers=_modified(opened))

    async def _file(self, request: web.BaseRequest, path: str, opened: _Opened) -> web.StreamResponse:
        size = opened.status.st_size
        try:
            part = _range(request.headers.get(hdrs.RANGE, ""), size)
        except ValueError as error:
            refusal = http_error(str(error), status=416)
            if "overlap" in str(error):
                refusal.headers[hdrs.CONTENT_RANGE] = f"bytes */{size}"
            return refusal
        start, end = part or (0, size)
        response = web.StreamResponse(status=206 if part else 200, headers=_modified(opened))
        response.headers.update({hdrs.SERVER: SERVER, hdrs.ACCEPT_RANGES: "bytes"})
        response.headers[hdrs.CONTENT_TYPE] = await self._read(lambda: _content_type(path, opened))
        if part:
            response.headers[hdrs.CONTENT_RANGE] = f"bytes {start}-{end - 1}/{size}"
        response.content_length = end - start
        await response.prepare(request)
        with abort_on_error(request):
            while start < end:
                chunk = await self._read(partial(opened.part, start, min(_CHUNK_BYTES, end - start)))
                if not chunk:
                    raise ConnectionError("the file became shorter than promised")
                await response.write(chunk)
                start += len(chunk)
        return response

    async def _read(self, work: Callable[[], T]) -> T:
        if self._readers is None:
            self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="logs")
        async with asyncio.timeout(_READ_SECONDS):
            return await asyncio.get_running_loop().run_in_executor(self._readers, work)


def _reference(name: str) -> str:
    """Return a name as a relative reference; `./` keeps a name with a colon from being read as a scheme."""
    escaped = quote(os.fsencode(name), safe="/&$+,:;=@~!*'()")
    return f"./{escaped}" if ":" in name.split("/", maxsplit=1)[0] else escaped


def _content_type(path: str, opened: _Opened) -> str:
    if by_name := _TYPES.get(posixpath.splitext(path)[1]):
        return by_name
    try:
        head = opened.part(0, _SNIFF_BYTES)
    except OSError:  # such as a link into /proc, whose content is not sent either
        head = b""
    # WHATWG MIME Sniffing: binary data bytes
    is_binary = any(byte < 0x20 and byte not in b"\t\n\x0c\r\x1b" for byte in head)
    return "application/octet-stream" if is_binary else _TEXT_TYPE


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Read a Range header: start and end, or None for the whole file, also for several ranges; raise ValueError."""
    if not header or "," in header:
        return None
    unit, _, text = header.partition("=")
    first, dash, last = (part.strip() for part in text.partition("-"))
    if unit != "bytes" or not dash or not (first or last):
        raise ValueError("invalid range")
    if not first:
        return max(0, size - _offset(last)), size
    start, end = _offset(first), min(size, _offset(last) + 1) if last else size
    if last and _offset(last) < start:
        raise ValueError("invalid range")
    if start >= size:
        raise ValueError("invalid range: failed to overlap")
    return start, end


def _offset(text: str) -> int:
    try:
        offset = parse_int(text, bits=64)
    except ValueError as error:
        raise ValueError("invalid range") from error
    if offset < 0:
        raise ValueError("invalid range")
    return offset


def _is_unchanged(request: web.BaseRequest, opened: _Opened) -> bool:
    try:
        since = request.if_modified_since
    except (ArithmeticError, LookupError, TypeError, ValueError):  # aiohttp raises these for invalid times
        return False
    return since is not None and opened.modified is not None and opened.modified <= since


def _modified(opened: _Opened) -> dict[str, str]:
    return {hdrs.LAST_MODIFIED: format_datetime(opened.modified, usegmt=True)} if opened.modified else {}


def _redirect(location: str) -> web.Response:
    return web.Response(status=301, headers={hdrs.LOCATION: location})


def _error_response(error: OSError) -> web.Response:
    if error.errno in _NOT_FOUND_ERRORS:
        return page_not_found()
    if isinstance(error, PermissionError):
        return http_error("403 Forbidden", status=403)
    return text_response("500 Internal Server Error\n", status=500)
