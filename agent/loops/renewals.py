"""How the renewals of one certificate went, in the kubelet's own metrics and ours."""

from collections.abc import Iterator
from datetime import datetime
from math import inf, trunc

from agent.core.tally import Counter, Family, Gauge, Histogram
from agent.core.x509 import Certificate

CLIENT, SERVER = "client", "server"
_LIFETIMES_SECONDS = (60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
_TTL = {  # kubelet v1.36: cmd/kubelet/app/server.go, pkg/kubelet/certificate/kubelet.go
    CLIENT: "[ALPHA] Gauge of the TTL (time-to-live) of the Kubelet's client certificate. "
    "The value is in seconds until certificate expiry (negative if already expired). "
    "If client certificate is invalid or unused, the value will be +INF.",
    SERVER: "[ALPHA] Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. "
    "The value is in seconds until certificate expiry (negative if already expired). "
    "If serving certificate is invalid or unused, the value will be +INF.",
}
_ERRORS = {
    CLIENT: "kubelet_certificate_manager_client_expiration_renew_errors",
    SERVER: "kubelet_server_expiration_renew_errors",
}


class Renewals:
    """Counts the renewals of the client's or the server's certificate."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._errors = Counter(_ERRORS[kind], "[ALPHA] Counter of certificate renewal errors.")
        self._rotations = Counter(
            "fake_kubelet_certificate_rotations_total", "Certificates that were obtained.", ("certificate",)
        )
        self._lifetimes = Histogram(
            "kubelet_certificate_manager_server_rotation_seconds",
            "[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.",
            buckets=_LIFETIMES_SECONDS,
        )

    def failed(self) -> None:
        """No certificate came."""
        self._errors.add()

    def succeeded(self, previous: Certificate | None, now: datetime) -> None:
        """A certificate came, after this one or as the first."""
        self._rotations.add(self._kind)
        if previous:
            self._lifetimes.observe(value=(now - previous.not_before).total_seconds())

    def families(self, current: Certificate | None, now: datetime) -> Iterator[Family]:
        """All of it as metrics, with what is left of the certificate in use."""
        ttl = Gauge(f"kubelet_certificate_manager_{self._kind}_ttl_seconds", _TTL[self._kind])
        ttl.set(value=trunc((current.not_after - now).total_seconds()) if current else inf)
        yield ttl.family()
        yield self._errors.family()
        yield self._rotations.family()
        if self._kind == SERVER:  # a kubelet measures this one only
            yield self._lifetimes.family()
