"""One certificate from the cluster: ask, wait until somebody approves, take it."""

import logging
from collections.abc import Callable
from contextlib import aclosing

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
    Expired,
    KeyMaker,
    NotSigned,
    PreparedRequest,
    SigningApi,
    Unavailable,
    Unusable,
)

log = logging.getLogger(__name__)

_WATCH_SECONDS = 60  # how long it may take to notice that something else is wanted by now
_PAUSE_SECONDS = 1.0


class Signing:
    """Asks for certificates, and waits for them."""

    def __init__(self, *, keys: KeyMaker, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock

    async def certificate(
        self,
        api: SigningApi,
        prepared: PreparedRequest,
        template: Template,
        *,
        within_seconds: float,
        name: str = "",
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> str:
        """The certificate; NotSigned if it is refused or does not come, another ApiError if asking fails."""
        deadline_seconds = self._clock.monotonic() + within_seconds
        request = await self._asked(api, prepared, template, name)
        log.log(V2, "Waiting for certificate to be issued", {"csr": request["metadata"]["name"]})
        while (left := deadline_seconds - self._clock.monotonic()) > 0 and still_wanted():
            pem = _pem(request, request) or await self._watched(api, request, min(left, _WATCH_SECONDS))
            if pem and (fault := mismatch(pem, template, prepared.public_key)):
                raise Unusable(fault)
            if pem:
                return pem
            request = await self._again(api, request)
        raise NotSigned("timed out waiting for the condition")

    async def _asked(self, api: SigningApi, prepared: PreparedRequest, template: Template, name: str) -> Object:
        purposes = usages(template.signer, is_rsa=prepared.is_rsa)
        request = signing_request(prepared.csr_pem, template, purposes, name=name)
        try:
            created = await api.create(request)
        except AlreadyExists:
            if not name:
                raise
            return await self._reused(api, request, prepared, template)
        log.log(V2, "Certificate signing request created", {"csr": created["metadata"]["name"]})
        return created

    async def _reused(self, api: SigningApi, ours: Object, prepared: PreparedRequest, template: Template) -> Object:
        """The request that an earlier start made with the same key."""
        log.info("csr for this node already exists, reusing")
        found = await api.get(ours["metadata"]["name"])
        fault = ""
        if found["spec"].get("signerName") != template.signer:
            fault = f'csr signerNames differ: new "{found["spec"].get("signerName")}", orig: "{template.signer}"'
        stored = decoded_request(found)
        fault = fault or await self._keys.fault(stored, prepared.key_pem, template) or overdue(found, self._clock.now())
        if fault:
            raise NotSigned(f"retrieved csr is not compatible: {fault}")
        log.info("csr for this node is still valid")
        return found

    async def _watched(self, api: SigningApi, request: Object, seconds: float) -> str | None:
        """What comes of the request in so many seconds."""
        metadata = request["metadata"]
        source = api.named(metadata["name"])
        try:
            async with aclosing(source.watch(metadata["resourceVersion"], seconds=max(1, round(seconds)))) as changes:
                async for change in changes:
                    if change.kind == "DELETED":
                        raise NotSigned(f'csr "{metadata["name"]}" was deleted')
                    if change.kind in {"ADDED", "MODIFIED"} and (pem := _pem(change.object, request)):
                        return pem
        except (Unavailable, Expired) as error:
            log.log(V2, "Unable to watch the certificate signing request", {"err": error})
        await self._clock.sleep(_PAUSE_SECONDS)  # also where a server ends each watch at once
        return None

    async def _again(self, api: SigningApi, request: Object) -> Object:
        """The request as it is now, so that nothing is missed between two watches."""
        name = request["metadata"]["name"]
        try:
            listed = await api.named(name).list()
        except Unavailable as error:
            log.log(V2, "Error fetching v1 certificate signing request", {"err": error})
            await self._clock.sleep(_PAUSE_SECONDS)
            return request
        if not listed.objects:
            raise NotSigned(f'csr "{name}" was deleted')
        found = listed.objects[0]
        metadata = {**found["metadata"], "resourceVersion": listed.version}
        if metadata["uid"] != request["metadata"]["uid"]:
            raise NotSigned(f'csr "{name}" changed UIDs')
        return {**found, "metadata": metadata}


def _pem(request: Object, asked: Object) -> str | None:
    try:
        return issued(request, asked["metadata"]["uid"])
    except Refused as error:
        raise NotSigned(str(error)) from error
