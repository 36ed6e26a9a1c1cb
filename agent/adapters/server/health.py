"""Health over plain HTTP, for the machine itself."""

import logging

from aiohttp import web

from agent.core.config import Serving
from agent.ports import StartError

log = logging.getLogger(__name__)


class HealthServer:
    """Answers `ok` on /healthz, as a kubelet does on 10248."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen; a StartError where somebody else does already."""
        if not self._serving.healthz_port:
            return
        app = web.Application()
        app.add_routes([web.get("/healthz", _ok), web.get("/healthz/ping", _ok)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        address, port = self._serving.healthz_bind_address, self._serving.healthz_port
        try:
            await web.TCPSite(self._runner, address, port).start()
        except OSError as error:
            raise StartError(
                f"cannot listen on {address}:{port}: {error.strerror}; "
                "choose another port with --healthz-port, or 0 for none"
            ) from error
        log.info("Starting to listen", {"address": address, "port": port})

    async def close(self) -> None:
        """Stop listening."""
        if self._runner:
            await self._runner.cleanup()


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok")
