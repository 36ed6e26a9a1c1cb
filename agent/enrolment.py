"""How a node comes to its credentials before its loops start, and keeps them while they run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agent.adapters.certificates.admission import (
    AdmissionFiles,
    client_files,
    client_pair,
    is_still_valid,
    remove_after_join,
    write_kubeconfig,
)
from agent.adapters.certificates.desk import Desk
from agent.adapters.certificates.memory import memory_file, path_of
from agent.adapters.certificates.serving import ServingCertificate, can_keep, ensure_self_signed, write_to_memory
from agent.adapters.certificates.smith import Smith
from agent.adapters.certificates.store import PemStore
from agent.adapters.credentials import Credentials, load_credentials
from agent.adapters.server.tls import Tls
from agent.controllers.bootstrap import BootstrapController
from agent.controllers.certificates import CertificateController, ExpiryWatchdog, Scheduling, WantedCertificate
from agent.controllers.csr import CSRRequester
from agent.core.config import Config
from agent.core.csr import client_template, is_of_another_node, serving_template
from agent.core.model import Object
from agent.core.x509 import Certificate, read_certificates
from agent.klog import V2
from agent.machinery.runner import Controller
from agent.node import Loop
from agent.ports import Clock, NotSigned, StartError

log = logging.getLogger(__name__)

_PREFIX = "kubelet-client"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The controllers of the client certificate, which are in the queue already."""

    controllers: Sequence[Controller] = ()
    is_awaited: bool = False  # whether the node can start only when one of them has set `admitted`
    admitted: asyncio.Event = field(default_factory=asyncio.Event)
    pair: Path | None = None  # where the client certificate is that is renewed


class Ending:
    """Ends the wait for a first certificate when the process is to end."""

    def __init__(self, stop: asyncio.Event, admitted: asyncio.Event) -> None:
        self._stop, self._admitted = stop, admitted

    async def run(self) -> None:
        """Pass the word on."""
        await self._stop.wait()
        self._admitted.set()


async def enrol(
    config: Config, *, scheduling: Scheduling, on_new: Callable[[], None], keys: Smith | None = None
) -> Enrolment:
    """Find out what is needed; a StartError if it cannot work. `on_new` is told of each certificate."""
    keys = keys or Smith()
    try:
        found = await _needed(config, scheduling, on_new, keys)
    except OSError as error:
        raise StartError(
            f"unable to use {error.filename}: {error.strerror}; --cert-dir and --kubeconfig name other places"
        ) from error
    if not found.is_awaited:  # where but the kubeconfig was missing, a child waits that has nothing to do now
        await asyncio.to_thread(keys.dismiss_early)
    return found


async def _needed(config: Config, scheduling: Scheduling, on_new: Callable[[], None], keys: Smith) -> Enrolment:
    settings = config.certificates
    if settings.bootstrap_kubeconfig and not config.kubeconfig:
        raise StartError("--bootstrap-kubeconfig needs --kubeconfig, the file that is written with what was obtained")
    if not config.kubeconfig:
        return Enrolment()
    if settings.rotate_client:
        return await _rotating(config, scheduling, on_new, keys)
    if settings.bootstrap_kubeconfig:
        return await _bootstrapping(config, scheduling, keys)
    return Enrolment()


def serving_by_request(
    config: Config, *, scheduling: Scheduling, addresses: Callable[[], Sequence[Object]], tls: Tls
) -> tuple[ServingCertificate, CertificateController]:
    """A serving certificate that the cluster signs, and what keeps it; it is asked for once the Node has an address."""
    settings = config.certificates
    given = (Path(settings.serving_certificate), Path(settings.serving_key)) if settings.serving_certificate else None
    store = PemStore(Path(settings.directory), "kubelet-server", other=given)
    serving = ServingCertificate(store.path, store.path, clock=scheduling.clock, fresh=tls.context, beside=tls.files)
    pair = PemStore(Path(settings.directory), _PREFIX).path if settings.rotate_client else None
    desk = Desk(lambda: load_credentials(config.kubeconfig, pair))
    controller = CertificateController(
        WantedCertificate(kind="server", template=lambda: serving_template(config.node_name, addresses())),
        store=store,
        requester=CSRRequester(clients=desk, keys=Smith(), clock=scheduling.clock),
        scheduling=scheduling,
        on_new=serving.asked.set,
    )
    controller.start()
    return serving, controller


async def serving_from_files(config: Config, *, clock: Clock, tls: Tls) -> tuple[ServingCertificate, Loop]:
    """A serving certificate from files that were given, which have to load, or from those a node makes for itself."""
    settings = config.certificates
    certificate, key = Path(settings.serving_certificate), Path(settings.serving_key)
    if certificate != Path(settings.directory) / "kubelet.crt":
        serving = ServingCertificate(certificate, key, clock=clock, fresh=tls.context, beside=tls.files)
        await serving.require()
        return serving, serving
    make = ensure_self_signed
    if not await asyncio.to_thread(can_keep, certificate.parent):
        log.warning("Unable to write to --cert-dir, the serving key is in memory", {"certDir": settings.directory})
        make, certificate, key = write_to_memory, path_of(memory_file()), path_of(memory_file())
    serving = ServingCertificate(certificate, key, clock=clock, fresh=tls.context, beside=tls.files)
    making = partial(make, certificate, key, host=config.node_name, smith=Smith())
    return serving, SelfSigning(making, then=serving)


class SelfSigning:
    """Makes a certificate where there is none, in a child process and beside everything else, then follows it."""

    def __init__(self, make: Callable[[], Awaitable[None]], *, then: Loop) -> None:
        self._make, self._then = make, then

    async def run(self) -> None:
        """Make it, and follow its files forever."""
        try:
            await self._make()
        except (NotSigned, OSError) as error:
            log.error("Unable to make a serving certificate, nobody can connect", {"err": error})
        await self._then.run()


async def _bootstrapping(config: Config, scheduling: Scheduling, keys: Smith) -> Enrolment:
    kubeconfig, bootstrap = Path(config.kubeconfig), Path(config.certificates.bootstrap_kubeconfig)
    if await is_still_valid(kubeconfig, scheduling.clock.now(), node_name=config.node_name):
        log.log(V2, "Kubeconfig exists and is valid, skipping bootstrap", {"path": str(kubeconfig)})
        await asyncio.to_thread(remove_after_join, bootstrap)
        return Enrolment()
    await _check_bootstrap(bootstrap)
    folder, admitted = Path(config.certificates.directory), asyncio.Event()
    store = PemStore(folder, _PREFIX)
    desk = Desk(lambda: load_credentials(str(bootstrap)))
    controller = BootstrapController(
        template=client_template(config.node_name),
        files=AdmissionFiles(folder=folder, store=store, kubeconfig=kubeconfig, bootstrap=bootstrap),
        store=store,
        requester=CSRRequester(clients=desk, keys=keys, clock=scheduling.clock),
        scheduling=scheduling,
        on_done=admitted.set,
    )
    controller.start()
    return Enrolment([controller], is_awaited=True, admitted=admitted)


async def _rotating(config: Config, scheduling: Scheduling, on_new: Callable[[], None], keys: Smith) -> Enrolment:
    clock = scheduling.clock
    log.info("Client rotation is on, will bootstrap in background")
    if not await _is_prepared(config, clock):
        log.log(V2, "The kubeconfig has no client certificate, there is nothing to rotate")
        return Enrolment()
    store, template = _store(config), client_template(config.node_name)
    embedded = await _adopt_embedded(config, store, clock)
    admitted, current = asyncio.Event(), await store.current() or embedded

    def on_certificate() -> None:
        admitted.set()
        on_new()
        if bootstrap := config.certificates.bootstrap_kubeconfig:
            asyncio.get_running_loop().run_in_executor(None, remove_after_join, Path(bootstrap))

    desk = Desk(lambda: _best_credentials(config, store, clock))
    controller = CertificateController(
        WantedCertificate(template=lambda: template, is_replaced_at_once=embedded is not None),
        store=store,
        requester=CSRRequester(clients=desk, keys=keys, clock=clock),
        scheduling=scheduling,
        on_new=on_certificate,
    )
    watchdog = ExpiryWatchdog(controller, scheduling)
    controller.start()
    watchdog.start()
    return Enrolment(
        (controller, watchdog),
        is_awaited=not _is_usable(current, config, clock),
        admitted=admitted,
        pair=store.path,
    )


async def _is_prepared(config: Config, clock: Clock) -> bool:
    """Whether there is, or will be, a client certificate to renew; a kubeconfig is written for one that will be."""
    kubeconfig, bootstrap = Path(config.kubeconfig), config.certificates.bootstrap_kubeconfig
    if not bootstrap:
        await load_credentials(config.kubeconfig)
        return await asyncio.to_thread(client_pair, kubeconfig) is not None
    if await is_still_valid(kubeconfig, clock.now(), node_name=config.node_name):
        log.log(V2, "Current kubeconfig file contents are still valid, no bootstrap necessary")
        await asyncio.to_thread(remove_after_join, Path(bootstrap))
        return True
    await _check_bootstrap(Path(bootstrap))
    path = _store(config, given=False).path
    try:
        await asyncio.to_thread(write_kubeconfig, kubeconfig, bootstrap=Path(bootstrap), pem=path)
    except OSError as error:
        raise StartError(f"unable to write --kubeconfig {kubeconfig}: {error.strerror}") from error
    log.log(V2, "Use the bootstrap credentials to request a cert, and set kubeconfig to point to the certificate dir")
    return True


async def _check_bootstrap(bootstrap: Path) -> None:
    try:
        await load_credentials(str(bootstrap))
    except StartError as error:
        raise StartError(f"failed to run Kubelet: unable to load bootstrap kubeconfig: {error}") from error


def _store(config: Config, *, given: bool = True) -> PemStore:
    folder = Path(config.certificates.directory)
    own = PemStore(folder, _PREFIX)
    files = client_files(Path(config.kubeconfig)) if given else None
    return PemStore(folder, _PREFIX, other=files) if files and files[0] != own.path else own


async def _adopt_embedded(config: Config, store: PemStore, clock: Clock) -> Certificate | None:
    """Take over a certificate that is in the kubeconfig itself, as kubeadm leaves it; it is to be replaced at once."""
    current = await store.current()
    if current and not current.is_over(clock.now()):
        return None
    if await asyncio.to_thread(client_files, Path(config.kubeconfig)):
        return None
    pair = await asyncio.to_thread(client_pair, Path(config.kubeconfig))
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
            f"the client certificate in --kubeconfig {config.kubeconfig} does not load: {error}"
        ) from error


async def _best_credentials(config: Config, store: PemStore, clock: Clock) -> Credentials:
    """Our own certificate while it is good, else what the bootstrap has."""
    current, bootstrap = await store.current(), config.certificates.bootstrap_kubeconfig
    if _is_usable(current, config, clock) or not bootstrap:
        return await load_credentials(config.kubeconfig, store.path)
    return await load_credentials(bootstrap)


def _is_usable(current: Certificate | None, config: Config, clock: Clock) -> bool:
    """Whether one can live with a certificate: with that of another node only if there is no way to get our own."""
    if current is None or current.is_over(clock.now()):
        return False
    return not config.certificates.bootstrap_kubeconfig or not is_of_another_node(current, config.node_name)
