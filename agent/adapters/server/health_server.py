"""The port for health: it listens from the start on, and loads what answers with the first request."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from agent.adapters.server.listener import Listener, listen
from agent.core.config import Serving
from agent.core.fleet_view import FleetView
from agent.core.node_view import NodeView, Setting
from agent.ports import Clock, StartError

if TYPE_CHECKING:
    from agent.adapters.server.http_protocol import Handler

log = logging.getLogger(__name__)

_RETRY_SECONDS = 5.0  # as kubelet


class HealthServer:
    """Listens on 10248 as a kubelet does, for /healthz and the status page."""

    def __init__(
        self,
        serving: Serving,
        *,
        clock: Clock,
        node_name: str = "",
        loops: Sequence[str] = (),
        faults: Callable[[], Mapping[str, str]] = dict,
        settings: Sequence[Setting] = (),
        observe: Callable[[str, bool], None] = lambda _name, _is_healthy: None,
    ) -> None:
        self._serving = serving
        self._clock = clock
        self._view: Callable[[], NodeView | FleetView] = lambda: NodeView(node_name=node_name)
        self._loops = loops
        self._faults = faults
        self._settings = settings
        self._observe = observe
        self._metrics: Callable[[], bytes] | None = None
        self._logged_error = ""

    def serve_metrics(self, metrics: Callable[[], bytes]) -> None:
        """Serve /metrics, too, for a process that has no other port for them."""
        self._metrics = metrics

    def follow(self, view: Callable[[], NodeView | FleetView]) -> None:
        """Show this view on the status page from now on."""
        self._view = view

    async def run(self) -> None:
        """Serve forever; while another process has the port, try again, as a kubelet does."""
        address, port = self._serving.healthz_bind_address, self._serving.healthz_port
        while port:
            try:
                sock = listen(address, port, flag="--healthz-port, or 0 for none")
            except StartError as error:
                if str(error) != self._logged_error:  # once, not every five seconds
                    self._logged_error = str(error)
                    log.error("Failed to start healthz server, will retry", {"err": error, "hint": error.hint})
                await self._clock.sleep(_RETRY_SECONDS)
                continue
            listener = Listener(sock, self._load, clock=self._clock)
            try:
                await listener.run()
            finally:
                await listener.close()

    def _load(self) -> "Handler":
        from agent.adapters.server.healthz import HealthPort  # noqa: PLC0415  aiohttp, for who is asked something

        port = HealthPort(
            self._serving,
            clock=self._clock,
            view=self._current_view,
            checks={loop: partial(self._fault_of, loop) for loop in self._loops},
            settings=self._settings,
            observe=self._observe,
            metrics=self._metrics,
        )
        return port.answer

    def _current_view(self) -> NodeView | FleetView:
        return self._view()

    def _fault_of(self, loop: str) -> str | None:
        return self._faults().get(loop)
