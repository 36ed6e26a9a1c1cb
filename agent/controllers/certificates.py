"""Keep a valid certificate: request the first one, and each next one before the last one expires."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf, trunc
from typing import Literal

from agent.controllers.csr import POLL_SECONDS, CSRRequester, PendingCSR
from agent.core.csr import Template, rotation_deadline, satisfies
from agent.core.metrics import Counter, Family, Gauge, Histogram
from agent.core.x509 import Certificate
from agent.klog import V2
from agent.machinery.backoff import Backoff
from agent.machinery.runner import Scheduling
from agent.ports import (
    ApiError,
    CertificateStore,
    Forbidden,
    NotFound,
    NotSigned,
    StartError,
    Unauthorized,
)

log = logging.getLogger(__name__)

_LOOK_SECONDS = 10.0  # how late a change of the template, or of the wall clock, is noticed
_PATIENCE_SECONDS = 900.0  # how long one CSR may stay unsigned, as in client-go
_LEAST_SECONDS = 10.0  # with a wrong clock every certificate is due at once: kubelet then asks once a second
_TEMPLATE_SECONDS = 1.0  # kubelet looks every second whether the node has an address
_BACKOFF_SECONDS = 2.0, 32.0  # as in client-go
_BACKOFF_JITTER = 0.1
_LOST_AFTER_SECONDS = 300.0

CertificateKind = Literal["client", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCertificate:
    """The certificate that a CertificateController keeps."""

    kind: CertificateKind = "client"
    template: Callable[[], Template | None]
    """Returns what the certificate has to contain; None while it cannot be requested."""
    is_replaced_at_once: bool = False
    """Whether the stored certificate is only there to request the next one with it."""


class CertificateController:
    """Requests the next certificate after 70 to 90 % of the last one's life, as client-go's certificate manager."""

    def __init__(
        self,
        wanted: WantedCertificate,
        *,
        store: CertificateStore,
        requester: CSRRequester,
        scheduling: Scheduling,
        on_new: Callable[[], None] = lambda: None,
    ) -> None:
        self.isolation = scheduling.isolation()
        self._template = wanted.template
        self._is_replaced_at_once = wanted.is_replaced_at_once
        self._store = store
        self._requester = requester
        self._clock = scheduling.clock
        self._queue = scheduling.queue
        self._connectivity = scheduling.dependencies.connectivity
        self._rand = scheduling.dependencies.rand
        self._on_new = on_new
        self._backoff = Backoff(self._clock, *_BACKOFF_SECONDS, jitter=_BACKOFF_JITTER, rand=self._rand)
        self._metrics = CertificateMetrics(wanted.kind)
        self._is_loaded = False
        self._is_renewing = False
        self._deadline: datetime | None = None  # of the certificate in use; None until it is determined
        self._csr: PendingCSR | None = None
        self.certificate: Certificate | None = None
        self.is_server_responsive = False

    def start(self) -> None:
        """Look at the stored certificate as soon as a worker is free."""
        self._queue.add(self)

    async def sync(self) -> float:
        """Renew the certificate if it is due. Returns the seconds until the next call.

        While a CSR waits to be signed, a call lasts for up to a minute.
        """
        if self._backoff.left_seconds:
            return self._backoff.left_seconds
        if not self._is_loaded:
            self.certificate = await self._store.current()
            self._is_loaded = True
        if not self._is_renewing and (left_seconds := self._seconds_until_due()) > 0:
            return min(left_seconds, _LOOK_SECONDS)
        try:
            return await self._renew()
        except ApiError as error:
            return self._retry(error)

    def families(self) -> Iterator[Family]:
        """Yield the metrics of the certificate."""
        return self._metrics.families(self.certificate, self._clock.now())

    async def _renew(self) -> float:
        csr, self._csr = self._csr, None  # an unexpected error forgets it: it may be the cause
        if csr is None:
            template = self._template()
            if template is None:
                self._is_renewing = False
                self._backoff.reset()
                return _TEMPLATE_SECONDS
            self._is_renewing = True
            log.log(V2, "Rotating certificates", {"signer": template.signer})
            prepared = await self._requester.prepare(template)
            csr = self._requester.pending(prepared, template, within_seconds=_PATIENCE_SECONDS)
        wanted = csr.template
        pem = await self._requester.poll(csr, still_wanted=lambda: self._template() == wanted)
        if pem is None:
            self._csr = csr
            return POLL_SECONDS
        previous, self.certificate = self.certificate, await self._store.update(pem, csr.prepared.key_pem)
        self._metrics.renewed(previous, self._clock.now())
        self._backoff.reset()
        self._is_renewing = self._is_replaced_at_once = False
        self._deadline = None
        self.is_server_responsive = True
        log.info("Certificate obtained", {"signer": wanted.signer, "expires": self.certificate.not_after.isoformat()})
        self._on_new()
        return _LEAST_SECONDS

    def _seconds_until_due(self) -> float:
        certificate, template = self.certificate, self._template()
        if certificate is None or self._is_replaced_at_once or (template and not satisfies(certificate, template)):
            return 0.0
        if self._deadline is None:
            self._deadline = rotation_deadline(certificate, self._rand())
            fields = {"expiration": certificate.not_after.isoformat(), "deadline": self._deadline.isoformat()}
            log.log(V2, "Certificate rotation deadline determined", fields)
        return (self._deadline - self._clock.now()).total_seconds()

    def _retry(self, error: ApiError) -> float:
        delay_seconds = self._backoff.next(error)
        self._connectivity.on_recovered(self._on_recovered)
        self._metrics.failed()
        if not isinstance(error, NotSigned):
            # client-go: these answers come from an API server that is well
            self.is_server_responsive = isinstance(error, Unauthorized | Forbidden | NotFound)
        interval = f"{self._backoff.interval_seconds:g}s"
        log.error("Certificate request was not signed", {"err": error, "retryAfter": interval})
        return delay_seconds

    def _on_recovered(self, delay_seconds: float) -> None:
        if self._backoff.left_seconds:
            self._backoff.cut_short()
            self._queue.add_after(self, delay_seconds)


class ExpiryWatchdog:
    """Ends the process when it has had no valid client certificate for five minutes and the API server is responsive.

    The next start may find other credentials.
    """

    def __init__(self, certificates: CertificateController, scheduling: Scheduling) -> None:
        self.isolation = scheduling.isolation()
        self._certificates = certificates
        self._clock = scheduling.clock
        self._queue = scheduling.queue
        self._valid_at_seconds = 0.0

    def start(self) -> None:
        """Begin to count the five minutes."""
        self._valid_at_seconds = self._clock.monotonic()
        self._queue.add_after(self, _LOOK_SECONDS)

    async def sync(self) -> float:
        """Look at the certificate, every ten seconds as kubelet does. Raises StartError to end the process."""
        certificate = self._certificates.certificate
        if certificate and not certificate.is_over(self._clock.now()):
            self._valid_at_seconds = self._clock.monotonic()
        elif self._clock.monotonic() - self._valid_at_seconds > _LOST_AFTER_SECONDS:
            lack = "The currently active client certificate has expired"
            lack = lack if certificate else "No valid client certificate is found"
            if self._certificates.is_server_responsive:
                raise StartError(f"{lack} and the server is responsive, exiting.")
            log.error(f"{lack}, but the server is not responsive")
        return _LOOK_SECONDS


_LIFETIMES_SECONDS = (60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
_TTL_HELP = {  # kubelet v1.36: cmd/kubelet/app/server.go, pkg/kubelet/certificate/kubelet.go
    "client": "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. "
    "The value is in seconds until certificate expiry (negative if already expired). "
    "If client certificate is invalid or unused, the value will be +INF.",
    "server": "[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. "
    "The value is in seconds until certificate expiry (negative if already expired). "
    "If serving certificate is invalid or unused, the value will be +INF.",
}
_ERRORS_NAME = {
    "client": "kubelet_certificate_manager_client_expiration_renew_errors",
    "server": "kubelet_server_expiration_renew_errors",
}


class CertificateMetrics:
    """Counts the renewals of the client or the serving certificate, under kubelet's metric names and our own."""

    def __init__(self, kind: CertificateKind) -> None:
        self._kind = kind
        self._errors = Counter(_ERRORS_NAME[kind], "[ALPHA] Counter of certificate renewal errors.")
        self._rotations = Counter(
            "fake_kubelet_certificate_rotations_total", "Certificates that were obtained.", ("certificate",)
        )
        self._lifetimes = Histogram(
            "kubelet_certificate_manager_server_rotation_seconds",
            "[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.",
            buckets=_LIFETIMES_SECONDS,
        )

    def failed(self) -> None:
        """Count a renewal that failed."""
        self._errors.add()

    def renewed(self, previous: Certificate | None, now: datetime) -> None:
        """Count a new certificate, and observe how long the previous one was in use."""
        self._rotations.add(self._kind)
        if previous:
            self._lifetimes.observe(value=(now - previous.not_before).total_seconds())

    def families(self, current: Certificate | None, now: datetime) -> Iterator[Family]:
        """Yield all metrics, and the time that is left of the certificate in use."""
        ttl = Gauge(f"kubelet_certificate_manager_{self._kind}_ttl_seconds", _TTL_HELP[self._kind])
        ttl.set(value=trunc((current.not_after - now).total_seconds()) if current else inf)
        yield ttl.family()
        yield self._errors.family()
        yield self._rotations.family()
        if self._kind == "server":  # a kubelet measures this one only
            yield self._lifetimes.family()
