"""Request a certificate from the cluster: create a CertificateSigningRequest and wait until it is signed."""

import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from agent.core.csr import (
    Refused,
    Template,
    decoded_request,
    issued,
    mismatch,
    overdue,
    signing_request,
    usages,
)
from agent.core.model import Object
from agent.klog import V2
from agent.ports import (
    AlreadyExists,
    Clock,
    CSRApi,
    CSRClients,
    Expired,
    KeyMaker,
    NotSigned,
    PreparedRequest,
    Unavailable,
    Unusable,
)

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
"""The pause between two polls, also where a server ends each watch at once."""

_WATCH_SECONDS = 60  # how long it may take to notice that the certificate is not wanted any more


@dataclass(slots=True)
class PendingCSR:
    """A CertificateSigningRequest that is not signed yet; the first poll creates it."""

    prepared: PreparedRequest
    template: Template
    deadline_seconds: float  # on the monotonic clock
    name: str = ""  # empty: the API server chooses one
    object: Object = field(default_factory=dict)  # as the API server returned it last; empty before it is created
    is_listed: bool = True  # whether the next poll may watch from `object` without reading it first


class CSRRequester:
    """Creates CertificateSigningRequests and polls them until the cluster has signed them."""

    def __init__(self, *, clients: CSRClients, keys: KeyMaker, clock: Clock) -> None:
        self._clients = clients
        self._keys = keys
        self._clock = clock

    async def prepare(self, template: Template, key_pem: str = "") -> PreparedRequest:
        """Sign a request with this key, or with a new one. Raises NotSigned where that fails."""
        return await self._keys.request(template, key_pem)

    def pending(
        self, prepared: PreparedRequest, template: Template, *, within_seconds: float, name: str = ""
    ) -> PendingCSR:
        """Return a CSR to poll, which may stay unsigned for so long."""
        return PendingCSR(prepared, template, self._clock.monotonic() + within_seconds, name)

    async def poll(self, csr: PendingCSR, *, still_wanted: Callable[[], bool] = lambda: True) -> str | None:
        """Watch the CSR for a minute at most and return its certificate; None means: poll again after POLL_SECONDS.

        Raises NotSigned if the CSR was denied or deleted, or is overdue; Unusable if the certificate is not what was
        requested; another ApiError if the API server refuses the request.
        """
        async with self._clients.open() as api:
            if not csr.object:
                csr.object = await self._create(api, csr)
                log.log(V2, "Waiting for certificate to be issued", {"csr": csr.object["metadata"]["name"]})
            elif not csr.is_listed:
                csr.is_listed = True  # whether it succeeds or not: a watch follows in any case
                try:
                    csr.object = await self._latest(api, csr.object)
                except Unavailable as error:
                    log.log(V2, "Error fetching v1 certificate signing request", {"err": error})
                    return None
            left_seconds = csr.deadline_seconds - self._clock.monotonic()
            if left_seconds <= 0 or not still_wanted():
                raise NotSigned("timed out waiting for the condition")
            uid = csr.object["metadata"]["uid"]
            pem = _issued(csr.object, uid) or await self._watch(api, csr.object, min(left_seconds, _WATCH_SECONDS))
        csr.is_listed = False
        if pem and (fault := mismatch(pem, csr.template, csr.prepared.public_key)):
            raise Unusable(fault)
        return pem

    async def _create(self, api: CSRApi, csr: PendingCSR) -> Object:
        purposes = usages(csr.template.signer, is_rsa=csr.prepared.is_rsa)
        request = signing_request(csr.prepared.csr_pem, csr.template, purposes, name=csr.name)
        try:
            created = await api.create(request)
        except AlreadyExists:
            if not csr.name:
                raise
            return await self._reuse(api, csr)
        log.log(V2, "Certificate signing request created", {"csr": created["metadata"]["name"]})
        return created

    async def _reuse(self, api: CSRApi, csr: PendingCSR) -> Object:
        """Return the CSR that an earlier start created with the same key. Raises NotSigned if it is not compatible."""
        log.info("csr for this node already exists, reusing")
        existing = await api.get(csr.name)
        signer, fault = existing["spec"].get("signerName"), ""
        if signer != csr.template.signer:
            fault = f'csr signerNames differ: new "{signer}", orig: "{csr.template.signer}"'
        fault = (
            fault
            or await self._keys.fault(decoded_request(existing), csr.prepared.key_pem, csr.template)
            or overdue(existing, self._clock.now())
        )
        if fault:
            raise NotSigned(f"retrieved csr is not compatible: {fault}")
        log.info("csr for this node is still valid")
        return existing

    async def _watch(self, api: CSRApi, request: Object, seconds: float) -> str | None:
        """Return the certificate if the CSR is signed within so many seconds."""
        metadata = request["metadata"]
        source = api.named(metadata["name"])
        try:
            async with aclosing(source.watch(metadata["resourceVersion"], seconds=max(1, round(seconds)))) as changes:
                async for change in changes:
                    if change.kind == "DELETED":
                        raise NotSigned(f'csr "{metadata["name"]}" was deleted')
                    if change.kind in {"ADDED", "MODIFIED"} and (pem := _issued(change.object, metadata["uid"])):
                        return pem
        except (Unavailable, Expired) as error:
            log.log(V2, "Unable to watch the certificate signing request", {"err": error})
        return None

    async def _latest(self, api: CSRApi, request: Object) -> Object:
        """List the CSR, so that nothing is missed between two watches."""
        name = request["metadata"]["name"]
        listed = await api.named(name).list()
        if not listed.objects:
            raise NotSigned(f'csr "{name}" was deleted')
        latest = listed.objects[0]
        metadata = {**latest["metadata"], "resourceVersion": listed.version}
        if metadata["uid"] != request["metadata"]["uid"]:
            raise NotSigned(f'csr "{name}" changed UIDs')
        return {**latest, "metadata": metadata}


def _issued(request: Object, uid: str) -> str | None:
    try:
        return issued(request, uid)
    except Refused as error:
        raise NotSigned(str(error)) from error
