"""The servers of a node: serving certificate, authentication, endpoints and listeners, put together."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.adapters.certificates.csr_clients import KubeCSRClients
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.certificates.serving import (
    ServingCertificate,
    can_store_pair,
    ensure_self_signed,
    write_self_signed,
)
from agent.adapters.certificates.store import PemStore
from agent.adapters.credentials import Credentials, load_credentials
from agent.adapters.server.listener import Listener, listen
from agent.adapters.server.sources import Sources
from agent.adapters.server.telemetry import ServerMetrics
from agent.adapters.server.tls import Tls, log_unsupported
from agent.adapters.tls import memory_file, path_of
from agent.controllers.certificates import CertificateController, WantedCertificate
from agent.controllers.csr import CSRRequester
from agent.core.config import Certificates, Config, Serving
from agent.core.csr import serving_template
from agent.core.model import NodeAddress
from agent.core.routing import NodePath
from agent.machinery.runner import Controller, Runnable, Scheduling
from agent.ports import Clock, NotSigned, ReviewApi, StartError

if TYPE_CHECKING:
    from agent.adapters.server.http_protocol import Handler

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KubeletServers:
    """The listeners of a node, and what keeps their certificate valid."""

    listeners: Sequence[Listener]
    loops: Sequence[Runnable]  # reload the files of the serving certificate
    controllers: Sequence[Controller]  # are in the queue already
    trust: Sequence[Tls]  # to be given new credentials, for their CA

    async def close(self) -> None:
        """Close all connections."""
        for listener in self.listeners:
            await listener.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletServerBuilder:
    """Builds the servers of one node: the kubelet's API over TLS, and the read-only port."""

    config: Config
    sources: Sources
    metrics: ServerMetrics
    reviews: ReviewApi
    credentials: Credentials
    addresses: Callable[[], Sequence[NodeAddress]]
    scheduling: Scheduling

    async def build(self) -> KubeletServers:
        """Listen where the settings say. Raises StartError if that fails."""
        serving = self.config.process.serving
        listeners: list[Listener] = []
        loops: list[Runnable] = []
        controllers: list[Controller] = []
        trust: list[Tls] = []
        if serving.enabled:
            tls = await load_tls(serving, self.credentials)
            trust.append(tls)
            if self.config.process.certificates.serving_by_request:
                certificate, controller = self._signed_by_cluster(tls)
                controllers.append(controller)
                loops.append(certificate)
            else:
                certificate, loop = await stored_certificate(
                    self.config.process.certificates, tls, self.scheduling.clock, host=self.config.node.node_name
                )
                loops.append(loop)
            listeners.append(self._authenticated(certificate))
        if serving.read_only_port:
            listeners.append(self._read_only())
        return KubeletServers(listeners, loops, controllers, trust)

    def _authenticated(self, certificate: ServingCertificate) -> Listener:
        """Listen for the kubelet's API over TLS."""
        serving, clock = self.config.process.serving, self.scheduling.clock

        def load_handler() -> "Handler":
            from agent.adapters.server.api import KubeletApi, full_table  # noqa: PLC0415  with the first connection
            from agent.adapters.server.auth_filter import AuthFilter  # noqa: PLC0415  as above

            auth_filter = AuthFilter(
                serving=serving,
                node_of=partial(NodePath, self.config.node.node_name),
                reviews=self.reviews,
                clock=clock,
            )
            table = full_table(serving, self.sources, self.metrics, clock)
            return KubeletApi(table, metrics=self.metrics, clock=clock, auth_filter=auth_filter).answer

        sock = listen(serving.address, serving.port, flag="--port")
        listener = Listener(sock, load_handler, clock=clock, tls=lambda: certificate.context)
        certificate.on_change = listener.drain  # the client CA that verified a connection may have changed, too
        return listener

    def _read_only(self) -> Listener:
        """Listen on the port that has neither TLS nor authentication."""
        serving, clock = self.config.process.serving, self.scheduling.clock

        def load_handler() -> "Handler":
            from agent.adapters.server.api import KubeletApi, read_only_table  # noqa: PLC0415  as above

            table = read_only_table(self.sources, self.metrics, clock)
            return KubeletApi(table, metrics=self.metrics, clock=clock).answer

        sock = listen(serving.address, serving.read_only_port, flag="--read-only-port; 0 is none")
        return Listener(sock, load_handler, clock=clock)

    def _signed_by_cluster(self, tls: Tls) -> tuple[ServingCertificate, Controller]:
        """Request the serving certificate from the cluster, as soon as the Node has an address."""
        config, settings, clock = self.config, self.config.process.certificates, self.scheduling.clock
        files = (Path(settings.serving_certificate), Path(settings.serving_key))
        folder = Path(settings.directory)
        store = PemStore(folder, "kubelet-server", other=files if settings.serving_certificate else None)
        certificate = _serving_certificate(store.path, store.path, tls, clock)
        client_pair = PemStore(folder, "kubelet-client").path if settings.rotate_client else None
        clients = KubeCSRClients(lambda: load_credentials(config.process.kubeconfig, client_pair))
        controller = CertificateController(
            WantedCertificate(
                kind="server", template=lambda: serving_template(config.node.node_name, self.addresses())
            ),
            store=store,
            requester=CSRRequester(clients=clients, keys=KeyWorker(), clock=clock),
            scheduling=self.scheduling,
            on_new=certificate.reload_requested.set,
        )
        controller.start()
        return certificate, controller


async def stored_certificate(
    settings: Certificates, tls: Tls, clock: Clock, *, host: str, in_memory: bool = False
) -> tuple[ServingCertificate, Runnable]:
    """Load the files that the settings name, or have a self-signed certificate made where they name none.

    The second of what is returned makes it, and follows the files. Raises StartError if they do not load.
    """
    certificate_path, key_path = Path(settings.serving_certificate), Path(settings.serving_key)
    if certificate_path != Path(settings.directory) / "kubelet.crt":
        certificate = _serving_certificate(certificate_path, key_path, tls, clock)
        await certificate.require()
        return certificate, certificate
    make = ensure_self_signed
    if in_memory or not await asyncio.to_thread(can_store_pair, certificate_path.parent):
        if not in_memory:
            fields = {"certDir": settings.directory}
            log.warning("Unable to write to --cert-dir, the serving key is in memory", fields)
        make, certificate_path, key_path = write_self_signed, path_of(memory_file()), path_of(memory_file())
    certificate = _serving_certificate(certificate_path, key_path, tls, clock)
    making = partial(make, certificate_path, key_path, host=host, key_worker=KeyWorker())
    return certificate, _SelfSigned(making, certificate)


def _serving_certificate(certificate: Path, key: Path, tls: Tls, clock: Clock) -> ServingCertificate:
    return ServingCertificate(certificate, key, clock=clock, new_context=tls.context, client_ca=tls.client_ca)


class _SelfSigned:
    """Has a self-signed certificate made while the node starts, then follows its files."""

    def __init__(self, make: Callable[[], Awaitable[None]], certificate: ServingCertificate) -> None:
        self._make = make
        self._certificate = certificate

    async def run(self) -> None:
        try:
            await self._make()
        except (NotSigned, OSError) as error:
            log.error("Unable to make a serving certificate, nobody can connect", {"err": error})
        await self._certificate.run()


async def load_tls(serving: Serving, credentials: Credentials) -> Tls:
    """Return what authenticates callers. Raises StartError if nothing would, or the client CA does not load."""
    tls = Tls(serving)
    await tls.use(credentials)
    if not (serving.anonymous or serving.client_ca_file or serving.token_reviews or tls.cluster_ca):
        raise StartError(
            "no authentication method configured; give --client-ca-file, or --authentication-token-webhook"
        )
    log_unsupported(serving)
    try:
        await asyncio.to_thread(tls.context)
    except (OSError, ValueError) as error:
        raise StartError(f"unable to load --client-ca-file {serving.client_ca_file}: {error}") from error
    return tls
