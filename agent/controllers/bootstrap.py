"""TLS bootstrap: get the first client certificate, as a kubelet does without --rotate-certificates."""

import logging
from collections.abc import Callable
from math import inf
from typing import Protocol

from agent.controllers.csr import POLL_SECONDS, CSRRequester, PendingCSR
from agent.core.csr import Template, digested_name, usages
from agent.klog import V2
from agent.machinery.runner import Scheduling
from agent.ports import ApiError, CertificateStore, NotSigned, PreparedRequest, StartError, Unavailable, Unusable

log = logging.getLogger(__name__)

_REACHABLE_WITHIN_SECONDS = 60.0
_RETRY_SECONDS = 2.0
_UNUSABLE_SECONDS = 10.0
_PATIENCE_SECONDS = 3600.0


class BootstrapState(Protocol):
    """The state of a TLS bootstrap that survives a crash in the middle of it."""

    async def key(self) -> str:
        """Return the key of an earlier start; empty if there is none."""

    async def keep_key(self, key_pem: str) -> None:
        """Keep a key until its certificate is stored."""

    async def finish(self) -> None:
        """Remove that key, and write the kubeconfig that uses the certificate."""


class BootstrapController:
    """Gets one client certificate with the bootstrap credentials; after that it is never due again."""

    def __init__(
        self,
        *,
        template: Template,
        state: BootstrapState,
        store: CertificateStore,
        requester: CSRRequester,
        scheduling: Scheduling,
        on_done: Callable[[], None],
    ) -> None:
        self.isolation = scheduling.isolation()
        self._template = template
        self._state = state
        self._store = store
        self._requester = requester
        self._clock = scheduling.clock
        self._queue = scheduling.queue
        self._on_done = on_done
        self._prepared: PreparedRequest | None = None
        self._csr: PendingCSR | None = None
        self._began_seconds = 0.0

    def start(self) -> None:
        """Request the certificate as soon as a worker is free."""
        self._queue.add(self)

    async def sync(self) -> float:
        """Take the next step towards the certificate. Raises StartError where a kubelet gives up and exits."""
        try:
            return await self._step()
        except (ApiError, OSError) as error:
            raise StartError(f"failed to run Kubelet: {error}") from error

    async def _step(self) -> float:
        if self._prepared is None:
            log.log(V2, "Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file")
            self._prepared = await self._prepare()
            self._began_seconds = self._clock.monotonic()
        csr, self._csr = self._csr or self._pending(self._prepared), None  # an unexpected error forgets it
        try:
            pem = await self._requester.poll(csr)
        except Unavailable as error:
            if self._clock.monotonic() >= self._began_seconds + _REACHABLE_WITHIN_SECONDS:
                raise
            log.info("Failed to connect to apiserver", {"err": error})
            return _RETRY_SECONDS
        except Unusable as error:
            if self._clock.monotonic() >= self._began_seconds + _PATIENCE_SECONDS:
                raise
            # The name of a CSR is derived from its key: the same key leads to the same useless certificate.
            log.error("The signed certificate is of no use, asking with another key", {"err": error})
            self._prepared = await self._prepare_with_new_key()
            return _UNUSABLE_SECONDS
        if pem is None:
            self._csr = csr
            return POLL_SECONDS
        await self._store.update(pem, self._prepared.key_pem)
        await self._state.finish()
        self._on_done()
        return inf

    async def _prepare(self) -> PreparedRequest:
        """Prepare a request with the key of an earlier start, so that the CSR of that start is used again."""
        if key_pem := await self._state.key():
            try:
                return await self._requester.prepare(self._template, key_pem)
            except NotSigned as error:
                log.error("Unable to use the key of an earlier start", {"err": error})
        return await self._prepare_with_new_key()

    async def _prepare_with_new_key(self) -> PreparedRequest:
        prepared = await self._requester.prepare(self._template)
        await self._state.keep_key(prepared.key_pem)
        return prepared

    def _pending(self, prepared: PreparedRequest) -> PendingCSR:
        purposes = usages(self._template.signer, is_rsa=prepared.is_rsa)
        name = digested_name(prepared.public_key, self._template, purposes)
        return self._requester.pending(prepared, self._template, within_seconds=_PATIENCE_SECONDS, name=name)
