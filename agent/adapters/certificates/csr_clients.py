"""CertificateSigningRequests at the API server, on connections of their own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from msgspec import Struct

from agent.adapters.api_connection import ApiConnection
from agent.adapters.credentials import Credentials
from agent.adapters.host import architecture
from agent.adapters.kube import KubeSelection
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


class CSRShape(Stored):
    """The fields of a CertificateSigningRequest that the daemon reads."""

    spec: _Spec
    status: _Status = _Status()


class KubeCSRs:
    """CertificateSigningRequests over HTTP: the CSRApi of one connection."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def create(self, request: Object) -> Object:
        """Create a CSR; the API server chooses a name where it has none."""
        return _checked(await self._connection.call("POST", _PATH, request))

    async def get(self, name: str) -> Object:
        """Read a CSR."""
        return _checked(await self._connection.call("GET", f"{_PATH}/{name}"))

    def named(self, name: str) -> KubeSelection:
        """Return the selection of one CSR, to list and watch it."""
        return KubeSelection(self._connection, _PATH, field_selector=f"metadata.name={name}", shape=CSRShape)


class KubeCSRClients:
    """Opens clients for CSRs, each with credentials that are loaded anew."""

    def __init__(self, load: Callable[[], Awaitable[Credentials]]) -> None:
        self._load = load

    @asynccontextmanager
    async def open(self) -> AsyncIterator[KubeCSRs]:
        """Connect with the current credentials. Raises NotSigned if they do not load."""
        try:
            credentials = await self._load()
        except StartError as error:
            raise NotSigned(f"unable to load a client to request certificates: {error}") from error
        connection = ApiConnection(credentials, architecture=architecture())
        try:
            yield KubeCSRs(connection)
        finally:
            await connection.close()


def _checked(answer: Object) -> Object:
    fault = misfit(answer, CSRShape)
    if fault is not None:
        raise Unusable(f"the answer about a certificate signing request makes no sense: {fault}")
    return answer
