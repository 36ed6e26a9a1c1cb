"""TLS bootstrap: obtains the client certificate of a node before it starts, and rotates it while the node runs."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.adapters.certificates.bootstrap_files import (
    BootstrapFiles,
    client_files,
    client_pair,
    is_still_valid,
    remove_after_join,
    write_kubeconfig,
)
from agent.adapters.certificates.csr_clients import KubeCSRClients
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.certificates.store import PemStore
from agent.adapters.credentials import Credentials, load_credentials
from agent.controllers.bootstrap import BootstrapController
from agent.controllers.certificates import CertificateController, ExpiryWatchdog, WantedCertificate
from agent.controllers.csr import CSRRequester
from agent.core.config import Config
from agent.core.csr import client_template, is_of_another_node
from agent.core.x509 import Certificate, read_certificates
from agent.klog import V2
from agent.machinery.runner import Controller, Scheduling
from agent.ports import Clock, NotSigned, StartError

log = logging.getLogger(__name__)

_PREFIX: Final = "kubelet-client"


@dataclass(frozen=True, slots=True)
class BootstrapPlan:
    """The controllers of the client certificate, which are in the queue already."""

    controllers: Sequence[Controller] = ()
    is_awaited: bool = False  # whether the node can start only when one of them has set `done`
    done: asyncio.Event = field(default_factory=asyncio.Event)
    pair: Path | None = None  # where the client certificate is that is renewed


class StopForwarder:
    """Ends the wait for the first certificate when the process is to stop."""

    def __init__(self, stop: asyncio.Event, done: asyncio.Event) -> None:
        self._stop = stop
        self._done = done

    async def run(self) -> None:
        """Set `done` as soon as `stop` is set."""
        await self._stop.wait()
        self._done.set()


async def plan_bootstrap(
    config: Config, *, scheduling: Scheduling, on_new: Callable[[], None], key_worker: KeyWorker | None = None
) -> BootstrapPlan:
    """Start the controllers that the settings and the files ask for. Raises StartError if they cannot work.

    `on_new` is called for each certificate that is renewed.
    """
    key_worker = key_worker or KeyWorker()
    try:
        plan = await _plan(config, scheduling, on_new, key_worker)
    except OSError as error:
        raise StartError(
            f"unable to use {error.filename}: {error.strerror}; --cert-dir and --kubeconfig name other places"
        ) from error
    if not plan.is_awaited:  # where only the kubeconfig was missing, a key worker was started for nothing
        await asyncio.to_thread(key_worker.stop_prestarted)
    return plan


async def _plan(
    config: Config, scheduling: Scheduling, on_new: Callable[[], None], key_worker: KeyWorker
) -> BootstrapPlan:
    settings = config.process.certificates
    if settings.bootstrap_kubeconfig and not config.process.kubeconfig:
        raise StartError("--bootstrap-kubeconfig needs --kubeconfig, the file that is written with what was obtained")
    if not config.process.kubeconfig:
        return BootstrapPlan()
    if settings.rotate_client:
        return await _plan_rotation(config, scheduling, on_new, key_worker)
    if settings.bootstrap_kubeconfig:
        return await _plan_single_certificate(config, scheduling, key_worker)
    return BootstrapPlan()


async def _plan_single_certificate(config: Config, scheduling: Scheduling, key_worker: KeyWorker) -> BootstrapPlan:
    """Plan the bootstrap of a node whose certificate is not rotated."""
    kubeconfig, bootstrap = Path(config.process.kubeconfig), Path(config.process.certificates.bootstrap_kubeconfig)
    if await is_still_valid(kubeconfig, scheduling.clock.now(), node_name=config.node.node_name):
        log.log(V2, "Kubeconfig exists and is valid, skipping bootstrap", {"path": str(kubeconfig)})
        await asyncio.to_thread(remove_after_join, bootstrap)
        return BootstrapPlan()
    await _check_bootstrap_kubeconfig(bootstrap)
    folder, done = Path(config.process.certificates.directory), asyncio.Event()
    store = PemStore(folder, _PREFIX)
    clients = KubeCSRClients(lambda: load_credentials(str(bootstrap)))
    controller = BootstrapController(
        template=client_template(config.node.node_name),
        state=BootstrapFiles(folder=folder, store=store, kubeconfig=kubeconfig, bootstrap=bootstrap),
        store=store,
        requester=CSRRequester(clients=clients, keys=key_worker, clock=scheduling.clock),
        scheduling=scheduling,
        on_done=done.set,
    )
    controller.start()
    return BootstrapPlan([controller], is_awaited=True, done=done)


async def _plan_rotation(
    config: Config, scheduling: Scheduling, on_new: Callable[[], None], key_worker: KeyWorker
) -> BootstrapPlan:
    """Plan the renewals of the client certificate, the first of which may be the bootstrap."""
    log.info("Client rotation is on, will bootstrap in background")
    clock = scheduling.clock
    if not await _prepare_kubeconfig(config, clock):
        log.log(V2, "The kubeconfig has no client certificate, there is nothing to rotate")
        return BootstrapPlan()
    store = _store(config, client_files(Path(config.process.kubeconfig)))
    template = client_template(config.node.node_name)
    embedded = await _store_embedded(config, store, clock)
    current, done = await store.current() or embedded, asyncio.Event()

    def on_certificate() -> None:
        done.set()
        on_new()
        if bootstrap := config.process.certificates.bootstrap_kubeconfig:
            asyncio.get_running_loop().run_in_executor(None, remove_after_join, Path(bootstrap))

    clients = KubeCSRClients(lambda: _best_credentials(config, store, clock))
    controller = CertificateController(
        WantedCertificate(template=lambda: template, is_replaced_at_once=embedded is not None),
        store=store,
        requester=CSRRequester(clients=clients, keys=key_worker, clock=clock),
        scheduling=scheduling,
        on_new=on_certificate,
    )
    watchdog = ExpiryWatchdog(controller, scheduling)
    controller.start()
    watchdog.start()
    is_usable = _is_usable(current, config, clock)
    return BootstrapPlan((controller, watchdog), is_awaited=not is_usable, done=done, pair=store.path)


async def _prepare_kubeconfig(config: Config, clock: Clock) -> bool:
    """Write the kubeconfig of a bootstrap. Returns whether it names a client certificate that can be rotated."""
    kubeconfig, bootstrap = Path(config.process.kubeconfig), config.process.certificates.bootstrap_kubeconfig
    if not bootstrap:
        await load_credentials(config.process.kubeconfig)
        return await asyncio.to_thread(client_pair, kubeconfig) is not None
    if await is_still_valid(kubeconfig, clock.now(), node_name=config.node.node_name):
        log.log(V2, "Current kubeconfig file contents are still valid, no bootstrap necessary")
        await asyncio.to_thread(remove_after_join, Path(bootstrap))
        return True
    await _check_bootstrap_kubeconfig(Path(bootstrap))
    try:
        await asyncio.to_thread(write_kubeconfig, kubeconfig, bootstrap=Path(bootstrap), pem=_store(config).path)
    except OSError as error:
        raise StartError(f"unable to write --kubeconfig {kubeconfig}: {error.strerror}") from error
    log.log(V2, "Use the bootstrap credentials to request a cert, and set kubeconfig to point to the certificate dir")
    return True


async def _check_bootstrap_kubeconfig(bootstrap: Path) -> None:
    try:
        await load_credentials(str(bootstrap))
    except StartError as error:
        text = f"failed to run Kubelet: unable to load bootstrap kubeconfig: {error}"
        raise StartError(text, hint=error.hint) from error


def _store(config: Config, files: tuple[Path, Path] | None = None) -> PemStore:
    """Return the store of the client certificate, which also looks at the files that the kubeconfig names."""
    folder = Path(config.process.certificates.directory)
    store = PemStore(folder, _PREFIX)
    return PemStore(folder, _PREFIX, other=files) if files and files[0] != store.path else store


async def _store_embedded(config: Config, store: PemStore, clock: Clock) -> Certificate | None:
    """Store the certificate that the kubeconfig itself contains, as kubeadm writes it, where there is no other.

    Returns that certificate, which is to be replaced at once.
    """
    current = await store.current()
    if current and not current.is_over(clock.now()):
        return None
    if await asyncio.to_thread(client_files, Path(config.process.kubeconfig)):
        return None
    pair = await asyncio.to_thread(client_pair, Path(config.process.kubeconfig))
    if pair is None:
        return None
    try:
        return await store.update(pair.certificate_pem, pair.key_pem)
    except NotSigned as error:
        log.error("Unable to set the cert/key pair to the bootstrap certificate", {"err": error})
    try:
        return read_certificates(pair.certificate_pem)[0]
    except ValueError as error:
        raise StartError(
            f"the client certificate in --kubeconfig {config.process.kubeconfig} does not load: {error}"
        ) from error


async def _best_credentials(config: Config, store: PemStore, clock: Clock) -> Credentials:
    """Load the stored certificate while it is usable, else the bootstrap kubeconfig."""
    current, bootstrap = await store.current(), config.process.certificates.bootstrap_kubeconfig
    if _is_usable(current, config, clock) or not bootstrap:
        return await load_credentials(config.process.kubeconfig, store.path)
    return await load_credentials(bootstrap)


def _is_usable(current: Certificate | None, config: Config, clock: Clock) -> bool:
    """Whether the node can start with this certificate; without bootstrap, it may be another node's."""
    if current is None or current.is_over(clock.now()):
        return False
    can_bootstrap = bool(config.process.certificates.bootstrap_kubeconfig)
    return not can_bootstrap or not is_of_another_node(current, config.node.node_name)
