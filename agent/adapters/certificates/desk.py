"""CertificateSigningRequests at the API server, on connections that live as long as one request."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from agent.adapters.credentials import Credentials
from agent.adapters.host import architecture
from agent.adapters.kube import KubeSelection
from agent.adapters.lane import Lane
from agent.adapters.shapes import Stored, Word, misfit
from agent.core.model import Object
from agent.ports import NotSigned, StartError, Unusable

_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class _Condition(Struct):
    type: Word
    reason: str = ""
    message: str = ""


class _Status(Struct, frozen=True):
    conditions: list[_Condition] = []
    certificate: str = ""


class _Spec(Struct, rename="camel"):
    request: str
    signer_name: str


class SigningShape(Stored):
    """A signing request, as far as it is read here."""

    spec: _Spec
    status: _Status = _Status()


class KubeSigningRequests:
    """Signing requests, as SigningApi wants them."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    async def create(self, request: Object) -> Object:
        """Create a request; where it has no name, the API server gives it one."""
        return _fitting(await self._lane.call("POST", _PATH, request))

    async def get(self, name: str) -> Object:
        """Read a request."""
        return _fitting(await self._lane.call("GET", f"{_PATH}/{name}"))

    def named(self, name: str) -> KubeSelection:
        """One request, to be watched."""
        return KubeSelection(self._lane, _PATH, field_selector=f"metadata.name={name}", shape=SigningShape)


class Desk:
    """Asks for certificates with credentials that are read anew for each of them."""

    def __init__(self, load: Callable[[], Awaitable[Credentials]]) -> None:
        self._load = load

    @asynccontextmanager
    async def open(self) -> AsyncIterator[KubeSigningRequests]:
        """Connections for one request."""
        try:
            credentials = await self._load()
        except StartError as error:
            raise NotSigned(f"unable to load a client to request certificates: {error}") from error
        lane = Lane(credentials, architecture=architecture())
        try:
            yield KubeSigningRequests(lane)
        finally:
            await lane.close()


def _fitting(answer: Object) -> Object:
    fault = misfit(answer, SigningShape)
    if fault is not None:
        raise Unusable(f"the answer about a certificate signing request makes no sense: {fault}")
    return answer
