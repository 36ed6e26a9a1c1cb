"""A client certificate before anything else: what kubelet does without --rotate-certificates."""

import logging
from collections.abc import Callable
from typing import Protocol

from agent.core.csr import Template, digested_name, usages
from agent.klog import V2
from agent.loops.signing import Signing
from agent.ports import (
    ApiError,
    CertificateStore,
    Clock,
    KeyMaker,
    NotSigned,
    PreparedRequest,
    SigningDesk,
    StartError,
    Unavailable,
    Unusable,
)

log = logging.getLogger(__name__)

_REACHABLE_WITHIN_SECONDS = 60.0
_PAUSE_SECONDS = 2.0
_UNUSABLE_SECONDS = 10.0
_PATIENCE_SECONDS = 3600.0


class BootstrapFiles(Protocol):
    """What outlives a crash in the middle."""

    async def key(self) -> str:
        """The key of an earlier start; empty if there is none."""

    async def keep_key(self, key_pem: str) -> None:
        """Keep a key until its certificate is there."""

    async def finish(self) -> None:
        """Forget that key, and write the kubeconfig that uses the certificate."""


class Bootstrap:
    """Gets one certificate with the bootstrap credentials, then is done."""

    def __init__(
        self,
        *,
        template: Template,
        files: BootstrapFiles,
        store: CertificateStore,
        desk: SigningDesk,
        keys: KeyMaker,
        clock: Clock,
        on_done: Callable[[], None],
    ) -> None:
        self._template, self._files, self._store, self._desk = template, files, store, desk
        self._keys, self._clock, self._on_done = keys, clock, on_done

    async def run(self) -> None:
        """Get the certificate; a StartError says why there is none, as kubelet ends then."""
        log.log(V2, "Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file")
        try:
            pem, key_pem = await self._signed(await self._prepared())
            await self._store.update(pem, key_pem)
            await self._files.finish()
        except (ApiError, OSError) as error:
            raise StartError(f"failed to run Kubelet: {error}") from error
        self._on_done()

    async def _prepared(self) -> PreparedRequest:
        """A request with the key of an earlier start, so that it finds its own request again."""
        if key_pem := await self._files.key():
            try:
                return await self._keys.request(self._template, key_pem)
            except NotSigned as error:
                log.error("Unable to use the key of an earlier start", {"err": error})
        return await self._with_new_key()

    async def _with_new_key(self) -> PreparedRequest:
        prepared = await self._keys.request(self._template)
        await self._files.keep_key(prepared.key_pem)
        return prepared

    async def _signed(self, prepared: PreparedRequest) -> tuple[str, str]:
        """The certificate and its key."""
        began_seconds = self._clock.monotonic()
        while True:
            try:
                return await self._asked(prepared), prepared.key_pem
            except Unavailable as error:
                if self._clock.monotonic() >= began_seconds + _REACHABLE_WITHIN_SECONDS:
                    raise
                log.info("Failed to connect to apiserver", {"err": error})
                await self._clock.sleep(_PAUSE_SECONDS)
            except Unusable as error:
                if self._clock.monotonic() >= began_seconds + _PATIENCE_SECONDS:
                    raise
                # The name of a request hangs on its key: this one will never bring anything else.
                log.error("The signed certificate is of no use, asking with another key", {"err": error})
                await self._clock.sleep(_UNUSABLE_SECONDS)
                prepared = await self._with_new_key()

    async def _asked(self, prepared: PreparedRequest) -> str:
        purposes = usages(self._template.signer, is_rsa=prepared.is_rsa)
        name = digested_name(prepared.public_key, self._template, purposes)
        signing = Signing(keys=self._keys, clock=self._clock)
        async with self._desk.open() as api:
            return await signing.certificate(api, prepared, self._template, within_seconds=_PATIENCE_SECONDS, name=name)
