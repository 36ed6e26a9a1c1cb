"""The socket by which `fleet scale` reaches the process that runs a fleet: one line of JSON each way."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from agent.core.errors import ConfigError
from agent.ports import AgentError, StartError

log = logging.getLogger(__name__)

Scale = Callable[[Mapping[str, int]], Awaitable[str]]
_ASK_SECONDS = 60.0  # thousands of Nodes may have to be deleted


class _Answer(msgspec.Struct):
    result: str = ""
    error: str = ""


class ControlSocket:
    """Listens for other counts of the groups."""

    def __init__(self, path: Path, scale: Scale) -> None:
        self._path = path
        self._scale = scale

    async def run(self) -> None:
        """Listen until cancelled; without the socket, the fleet cannot be scaled from outside."""
        if await _is_in_use(self._path):
            log.warning(
                "Another process runs a fleet of this name, fleet scale reaches that one", {"socket": self._path}
            )
            return
        try:
            self._path.unlink(missing_ok=True)
            server = await asyncio.start_unix_server(self._answer, self._path)
        except OSError as error:
            log.warning("Unable to listen for fleet scale", {"err": error, "socket": self._path})
            return
        self._path.chmod(0o600)
        try:
            await server.serve_forever()
        finally:
            self._path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            counts = msgspec.json.decode(await reader.readline(), type=dict[str, int])
            answer = _Answer(result=await self._scale(counts))
        except (ConfigError, AgentError, ValueError, msgspec.MsgspecError) as error:
            answer = _Answer(error=str(error))
        with suppress(ConnectionError):
            writer.write(msgspec.json.encode(answer) + b"\n")
            await writer.drain()
        writer.close()


async def ask_scale(path: Path, counts: Mapping[str, int]) -> str:
    """Ask the process that runs a fleet for other counts; return what changed. Raises StartError."""
    try:
        async with asyncio.timeout(_ASK_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(msgspec.json.encode(counts) + b"\n")
            answer = msgspec.json.decode(await reader.readline(), type=_Answer)
            writer.close()
    except FileNotFoundError as error:
        raise StartError("no such fleet runs on this machine; --name says which") from error
    except (OSError, TimeoutError, msgspec.MsgspecError) as error:
        raise StartError(f"the process that runs the fleet does not answer: {error}") from error
    if answer.error:
        raise StartError(answer.error)
    return answer.result


async def _is_in_use(path: Path) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(path)
    except OSError:
        return False
    writer.close()
    return True
