"""Why there is no answer, in the words of Go: asked of servers that really fail so."""

import asyncio
import re
import socket
import ssl
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from agent.adapters.http1 import HttpError
from agent.adapters.http_client import CertificateError, HttpClient
from agent.adapters.reasons import connect_reason, connection_reason, lookup_reason
from agent.adapters.tls import client_context
from tests.cluster.pairs import authority, client_pair

pytestmark = pytest.mark.anyio

LOOPBACK, ELSEWHERE = b"\x30\x06\x87\x04\x7f\x00\x00\x01", b"\x30\x06\x87\x04\x0a\x00\x00\x01"
NOW, DAY = datetime.now(UTC), timedelta(days=1)


def server_context(folder, signer, *, names=LOOPBACK, **life):
    pair = client_pair("api", signer, usage=ExtendedKeyUsageOID.SERVER_AUTH, alternative_names=names, **life)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair.write(folder, "api", signer))
    return context


async def hang_up(_, writer):
    writer.close()


def saying(content):
    async def serve(reader, writer):
        with suppress(ConnectionError):
            await reader.read(100)
            writer.write(content)
            await writer.drain()
        writer.close()

    return serve


@asynccontextmanager
async def client_of(serve, trusted, tls=None, url="https://127.0.0.1:{port}", **settings):
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        settings = {name: value.format(port=port) for name, value in settings.items()}
        client = HttpClient(url.format(port=port), tls=client_context(trusted.pem.encode()), **settings)
        try:
            yield client
        finally:
            client.close()


@pytest.mark.parametrize(
    ("context", "blame", "words"),
    [
        ({"by_other": True}, "authority", "certificate signed by unknown authority"),
        (
            {"begin": NOW - 2 * DAY, "end": NOW - DAY},
            "time",
            "certificate has expired or is not yet valid: certificate has expired",
        ),
        (
            {"begin": NOW + DAY, "end": NOW + 2 * DAY},
            "time",
            "certificate has expired or is not yet valid: certificate is not yet valid",
        ),
        ({"names": ELSEWHERE}, "name", "certificate is not valid for 127.0.0.1"),
    ],
    ids=["of another authority", "expired", "not yet valid", "of another name"],
)
async def test_a_certificate_that_is_not_trusted(tmp_path, context, blame, words):
    trusted = authority("ca")
    signer = authority("other") if context.pop("by_other", False) else trusted
    async with client_of(hang_up, trusted, server_context(tmp_path, signer, **context)) as client:
        with pytest.raises(CertificateError) as caught:
            await client.send("GET", "/")
    assert str(caught.value) == f"tls: failed to verify certificate: x509: {words}"
    assert caught.value.blame == blame


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"HTTP/1.0 400 Bad Request\r\n\r\n", "tls: first record does not look like a TLS handshake"),
        (bytes(100), "tls: first record does not look like a TLS handshake"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "remote error: tls: handshake failure"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "remote error: tls: protocol version not supported"),
        (b"\x15\x03\x03\x00\x02\x02\x30", "remote error: tls: unknown certificate authority"),
        (b"\x15\x03\x03\x00\x02\x02\x74", "remote error: tls: certificate required"),
        (b"", "EOF"),
    ],
    ids=["HTTP", "zeros", "handshake failure", "version", "authority", "certificate required", "nothing"],
)
async def test_a_server_that_does_not_speak_tls_with_us(content, words):
    async with client_of(saying(content), authority("ca")) as client:
        with pytest.raises(HttpError, match=f"^{words}$"):
            await client.send("GET", "/")


async def test_a_name_that_cannot_be_one():
    async with client_of(hang_up, authority("ca"), url="https://a..b:1") as client:
        with pytest.raises(HttpError, match=r"^dial tcp: lookup a\.\.b: no such host$"):
            await client.send("GET", "/")


async def test_a_proxy_where_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    async with client_of(hang_up, authority("ca"), proxy=f"http://127.0.0.1:{port}") as client:
        with pytest.raises(
            HttpError, match=rf"^proxyconnect tcp: dial tcp 127\.0\.0\.1:{port}: connect: connection re"
        ):
            await client.send("GET", "/")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(113, "x"), "no route to host"),
        (
            OSError("Multiple exceptions: [Errno 101] Connect call failed ('::1', 1, 0, 0), [Errno 111] …"),
            "unreachable",
        ),
    ],
)
def test_no_connection(error, reason):
    assert connect_reason(error).endswith(reason)


def test_a_resolver_that_does_not_answer_is_not_a_host_that_does_not_exist():
    assert lookup_reason(socket.gaierror(socket.EAI_NONAME, "x")) == "no such host"
    failed = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    assert lookup_reason(failed) == "Temporary failure in name resolution"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ConnectionResetError(104, "x"), "read: connection reset by peer"), (ConnectionAbortedError(), "EOF")],
)
def test_a_connection_that_ends(error, reason):
    assert connection_reason(error) == reason


@pytest.mark.parametrize("number", range(1, 120))
def test_no_error_of_the_system_has_a_number_or_the_name_of_an_exception(number):
    assert not re.search(r"Errno|Error\b|\(", connection_reason(OSError(number, "x")))
