"""The kubelet's API of a node: certificate, gate, endpoints and listeners, put together."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.adapters.certificates.serving import ServingCertificate
from agent.adapters.server.api import KubeletApi
from agent.adapters.server.counting import ServerTallies
from agent.adapters.server.endpoints import NodeEndpoints
from agent.adapters.server.entrance import listen
from agent.adapters.server.gate import Gate
from agent.adapters.server.listener import Listener
from agent.adapters.server.paths import full_table, open_table
from agent.adapters.server.sources import Sources
from agent.adapters.server.tls import Tls, tell_about
from agent.controllers.certificates import Scheduling
from agent.core.config import Config, Serving
from agent.core.model import Object
from agent.enrolment import serving_by_request, serving_from_files
from agent.machinery.runner import Controller
from agent.node import Loop
from agent.ports import ReviewApi, StartError


@dataclass(frozen=True, slots=True)
class Doors:
    """What has to run as long as this node serves."""

    loops: Sequence[Loop]
    listeners: Sequence[Listener]
    controllers: Sequence[Controller] = ()

    async def close(self) -> None:
        """End all connections."""
        for listener in self.listeners:
            await listener.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorkeeper:
    """Opens the doors of one node."""

    config: Config
    sources: Sources
    tallies: ServerTallies
    reviews: ReviewApi
    addresses: Callable[[], Sequence[Object]]
    scheduling: Scheduling

    async def open(self) -> Doors:
        """Listen where the settings say; a StartError says why that cannot be."""
        node, serving = NodeEndpoints(self.sources, self.scheduling.clock), self.config.serving
        loops: list[Loop] = []
        listeners: list[Listener] = []
        controllers: list[Controller] = []
        if serving.enabled:
            tls = await _tls(serving)
            if self.config.certificates.serving_by_request:
                certificate, controller = serving_by_request(
                    self.config, scheduling=self.scheduling, addresses=self.addresses, tls=tls
                )
                controllers.append(controller)
                loops.append(certificate)
            else:
                certificate, following = await serving_from_files(self.config, clock=self.scheduling.clock, tls=tls)
                loops.append(following)
            listeners.append(self._main(node, certificate))
        if serving.read_only_port:
            listeners.append(self._read_only(node))
        return Doors(loops, listeners, controllers)

    def _main(self, node: NodeEndpoints, certificate: ServingCertificate) -> Listener:
        """The kubelet's API over TLS, for those who may."""
        config, serving, clock = self.config, self.config.serving, self.scheduling.clock
        gate = Gate(serving=serving, node_name=config.node_name, reviews=self.reviews, clock=clock)
        table = full_table(serving, node, self.sources, self.tallies, clock)
        api = KubeletApi(table, tallies=self.tallies, clock=clock, gate=gate)
        entrance = listen(serving.address, serving.port, flag="--port")
        listener = Listener(entrance, api.answer, clock=clock, tls=lambda: certificate.context)
        certificate.on_change = listener.dismiss  # with it may go the client CA that somebody was trusted for
        return listener

    def _read_only(self, node: NodeEndpoints) -> Listener:
        """What everybody may see, without TLS."""
        serving = self.config.serving
        table = open_table(node, self.sources, self.tallies)
        api = KubeletApi(table, tallies=self.tallies, clock=self.scheduling.clock)
        entrance = listen(serving.address, serving.read_only_port, flag="--read-only-port; 0 is none")
        return Listener(entrance, api.answer, clock=self.scheduling.clock)


async def _tls(serving: Serving) -> Tls:
    if not (serving.anonymous or serving.client_ca_file or serving.token_reviews):
        raise StartError(
            "no authentication method configured; give --client-ca-file, or --authentication-token-webhook"
        )
    tell_about(serving)
    tls = Tls(serving)
    try:
        await asyncio.to_thread(tls.context)
    except (OSError, ValueError) as error:
        raise StartError(f"unable to load --client-ca-file {serving.client_ca_file}: {error}") from error
    return tls
