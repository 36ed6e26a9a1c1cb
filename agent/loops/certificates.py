"""Keep a certificate that is good: the first one, and each next one before the last one ends."""

import logging
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from agent.core.csr import Template, rotation_deadline, satisfies
from agent.core.tally import Family
from agent.core.x509 import Certificate
from agent.klog import V2
from agent.loops.renewals import CLIENT, Renewals
from agent.loops.signing import Signing
from agent.machinery.dependencies import Dependencies
from agent.machinery.retry import renewing_certificate
from agent.ports import (
    ApiError,
    CertificateStore,
    Clock,
    Forbidden,
    KeyMaker,
    NotFound,
    NotSigned,
    Rand,
    SigningDesk,
    StartError,
    Unauthorized,
)

log = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0  # how late a change of what is wanted, or of the wall clock, is noticed
_PATIENCE_SECONDS = 900.0  # how long one request may stay unsigned, as in client-go
_LEAST_SECONDS = 10.0  # with a wrong clock every certificate is due at once: kubelet then asks once a second
_LOST_AFTER = timedelta(minutes=5)


class CertificateLoop:
    """Has the next certificate made after 70 to 90 % of the last one's life, as client-go's certificate manager."""

    def __init__(
        self,
        *,
        template: Callable[[], Template | None],
        store: CertificateStore,
        desk: SigningDesk,
        keys: KeyMaker,
        clock: Clock,
        dependencies: Dependencies,
        rand: Rand = random.random,
        on_new: Callable[[], None] = lambda: None,
        at_once: bool = False,
        kind: str = CLIENT,
    ) -> None:
        self._template, self._store, self._desk, self._keys = template, store, desk, keys
        self._clock, self._dependencies, self._rand, self._on_new = clock, dependencies, rand, on_new
        self._signing = Signing(keys=keys, clock=clock)
        self._renewals = Renewals(kind)
        self._at_once = at_once  # what is there is not meant to last
        self.certificate: Certificate | None = None
        self.is_server_responsive = False

    async def run(self) -> None:
        """Renew forever; cancellation is the only way out."""
        self.certificate = await self._store.current()
        while True:
            await self._until_due()
            if self._template():
                await self._renew()
                await self._clock.sleep(_LEAST_SECONDS)
            else:
                await self._clock.sleep(1.0)  # kubelet looks every second whether the node has an address by now

    async def sync(self) -> None:
        """Have one certificate made, and keep it; an ApiError says why there is none."""
        template = self._template()
        if template is None:
            return
        log.log(V2, "Rotating certificates", {"signer": template.signer})
        prepared = await self._keys.request(template)
        async with self._desk.open() as api:
            pem = await self._signing.certificate(
                api,
                prepared,
                template,
                within_seconds=_PATIENCE_SECONDS,
                still_wanted=lambda: self._template() == template,
            )
        previous, self.certificate = self.certificate, await self._store.update(pem, prepared.key_pem)
        self._renewals.succeeded(previous, self._clock.now())
        self.is_server_responsive, self._at_once = True, False
        log.info("Certificate obtained", {"signer": template.signer, "expires": self.certificate.not_after.isoformat()})
        self._on_new()

    def families(self) -> Iterator[Family]:
        """How the renewals went, as metrics."""
        return self._renewals.families(self.certificate, self._clock.now())

    async def _renew(self) -> None:
        async for attempt in renewing_certificate(self._dependencies, self._failed):
            with attempt:
                await self.sync()

    async def _until_due(self) -> None:
        """Wait for the deadline in small steps: the wall clock may be set, and what is wanted may change."""
        deadline = self._deadline()
        while self._fits() and (left := (deadline - self._clock.now()).total_seconds()) > 0:
            await self._clock.sleep(min(left, _LOOK_SECONDS))

    def _deadline(self) -> datetime:
        if self.certificate is None or self._at_once or not self._fits():
            return self._clock.now()
        deadline, expires = rotation_deadline(self.certificate, self._rand()), self.certificate.not_after
        fields = {"expiration": expires.isoformat(), "deadline": deadline.isoformat()}
        log.log(V2, "Certificate rotation deadline determined", fields)
        return deadline

    def _fits(self) -> bool:
        template = self._template()
        return self.certificate is not None and (template is None or satisfies(self.certificate, template))

    def _failed(self, error: ApiError, interval_seconds: float) -> None:
        self._renewals.failed()
        if not isinstance(error, NotSigned):
            # client-go: these answers come from an API server that is well
            self.is_server_responsive = isinstance(error, Unauthorized | Forbidden | NotFound)
        log.error("Certificate request was not signed", {"err": error, "retryAfter": f"{interval_seconds:g}s"})


class CertificateGuard:
    """Ends the process when it has no certificate to live with: the next start has other credentials, perhaps."""

    def __init__(self, certificates: CertificateLoop, clock: Clock) -> None:
        self._certificates = certificates
        self._clock = clock

    async def run(self) -> None:
        """Look every ten seconds, as kubelet does; a StartError is the end."""
        alive_at = self._clock.monotonic()
        while True:
            await self._clock.sleep(_LOOK_SECONDS)
            certificate = self._certificates.certificate
            if certificate and not certificate.is_over(self._clock.now()):
                alive_at = self._clock.monotonic()
            elif self._clock.monotonic() - alive_at > _LOST_AFTER.total_seconds():
                self._judge(certificate)

    def _judge(self, certificate: Certificate | None) -> None:
        lack = "The currently active client certificate has expired" if certificate else "No valid client certificate"
        lack = lack if certificate else f"{lack} is found"
        if self._certificates.is_server_responsive:
            raise StartError(f"{lack} and the server is responsive, exiting.")
        log.error(f"{lack}, but the server is not responsive")
