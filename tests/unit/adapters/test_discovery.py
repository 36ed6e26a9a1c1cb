import asyncio
import base64
import gzip
import hashlib
import json
import os

import httpx
import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.discovery import Discovery
from agent.core.discovery import Distrusted
from agent.core.errors import ConfigError
from agent.ports import StartError
from tests.fakes import FakeClock
from tests.unit.core.certificates import EC_KEY, made, spki
from tests.unit.core.jws import TOKEN, signature

pytestmark = pytest.mark.anyio

PEM = made()
PIN = frozenset({hashlib.sha256(spki(EC_KEY)).hexdigest()})
CLUSTER = {"server": "https://192.0.2.1:6443", "certificate-authority-data": base64.b64encode(PEM.encode()).decode()}
KUBECONFIG = json.dumps({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": CLUSTER}]})


class Impatient(FakeClock):
    """A clock on which every wait is over at once."""

    async def sleep(self, seconds):
        self.elapsed += seconds


def cluster_info(content=KUBECONFIG, signed=True):
    data = {"kubeconfig": content}
    if signed:
        data[f"jws-kubeconfig-{TOKEN.id}"] = signature(content=content)
    return httpx.Response(200, json={"data": data})


def discovery(*answers, patience=300.0):
    """A cluster that gives these answers in turn, and the last one for ever."""
    left = list(answers)

    def answer(request):
        assert request.url.path in {"/api/v1/namespaces/kube-public/configmaps/cluster-info", "/file"}
        assert "authorization" not in request.headers
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, stream=httpx.ByteStream(found.content))

    clock = Impatient()
    return Discovery(clock=clock, timeout_seconds=patience, transport=httpx.MockTransport(answer)), clock


async def test_a_signed_and_pinned_cluster_is_found():
    found, _ = discovery(cluster_info())
    cluster = await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    assert (cluster.server, cluster.authority_pem) == ("https://192.0.2.1:6443", PEM)


async def test_a_signature_that_comes_late_is_waited_for():
    found, clock = discovery(cluster_info(signed=False), httpx.ConnectError("refused"), cluster_info())
    await found.by_token("192.0.2.1:6443", TOKEN, frozenset())
    assert clock.elapsed == 2


async def test_rights_that_come_late_are_waited_for():
    found, clock = discovery(httpx.Response(403, json={}), httpx.Response(401, json={}), cluster_info())
    await found.by_token("192.0.2.1:6443", TOKEN, frozenset())
    assert clock.elapsed == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.ConnectError("connection refused"), "https://192.0.2.1:6443: connection refused"),
        (cluster_info(signed=False), 'token id "abcdef" is invalid for this cluster or it has expired'),
        (httpx.Response(401, json={}), "HTTP 401 Unauthorized"),
        (httpx.Response(403, json={}), "HTTP 403 Forbidden"),
        (httpx.Response(404, json={}), "HTTP 404"),
        (httpx.Response(200, text="<html>"), "HTTP 200"),
        (httpx.Response(200, json={"data": {"x": "y" * 2**21}}), "larger than"),
    ],
    ids=[
        "unreachable",
        "expired token",
        "unknown",
        "no rights",
        "no cluster-info",
        "no Kubernetes at all",
        "far too much",
    ],
)
async def test_what_does_not_get_better_is_told_at_once_and_after_the_timeout(answer, message, caplog):
    caplog.set_level("INFO", "agent")
    found, clock = discovery(answer, patience=60.0)
    with pytest.raises(StartError, match=f"couldn't validate the identity of the API Server: .*{message}"):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    assert clock.elapsed == pytest.approx(60, abs=1)
    assert [record.msg for record in caplog.records].count("Retrying discovery") == 1


async def test_a_proxy_that_is_no_url_is_told_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://user:s3cret/@192.0.2.9:3128")
    found = Discovery(clock=Impatient(), timeout_seconds=0.0)
    with pytest.raises(StartError, match="HTTPS_PROXY: a proxy is") as raised:
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    assert "s3cret" not in str(raised.value)


async def test_a_second_answer_that_differs_is_refused():
    found, _ = discovery(cluster_info(), cluster_info(KUBECONFIG.replace("6443", "1")))
    with pytest.raises(Distrusted, match="was different from the first"):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)


async def test_an_authority_that_is_not_pinned_is_refused():
    found, _ = discovery(cluster_info())
    with pytest.raises(Distrusted, match="none of the public keys"):
        await found.by_token("192.0.2.1:6443", TOKEN, frozenset({"0" * 64}))


@pytest.mark.parametrize(
    "content", ["", "- a", "clusters: []", "clusters: [{}]", "clusters:\n- name: a\n  cluster: {}"]
)
async def test_a_signed_kubeconfig_may_still_be_nonsense(content):
    found, _ = discovery(cluster_info(content or "~"))
    with pytest.raises(ConfigError, match="malformed kubeconfig"):
        await found.by_token("192.0.2.1:6443", TOKEN, frozenset())


async def test_a_file_tells_of_a_cluster_even_if_cluster_info_is_not_for_everybody(tmp_path):
    path = tmp_path / "discovery.conf"
    path.write_text(KUBECONFIG)
    found, _ = discovery(httpx.Response(403, json={}))
    assert (await found.by_file(str(path))).server == "https://192.0.2.1:6443"


async def test_a_file_may_be_on_a_web_server_and_bring_credentials():
    context = {"name": "c", "context": {"cluster": "", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    document = json.loads(KUBECONFIG) | {"current-context": "c", "contexts": [context], "users": users}
    found, _ = discovery(httpx.Response(200, json=document), cluster_info())
    assert (await found.by_file("https://192.0.2.9/file")).user == {"token": "t"}


async def test_a_file_whose_authority_does_not_load_is_named(tmp_path):
    path = tmp_path / "discovery.conf"
    path.write_text(KUBECONFIG.replace(CLUSTER["certificate-authority-data"], base64.b64encode(b"broken").decode()))
    found, _ = discovery(cluster_info())
    with pytest.raises(ConfigError, match=f"the certificate-authority in {path} does not load"):
        await found.by_file(str(path))


async def test_a_file_that_is_no_yaml_is_named_without_its_secrets(tmp_path):
    path = tmp_path / "discovery.conf"
    path.write_text("users:\n- user: {token: *s3cret}\n")
    found, _ = discovery(cluster_info())
    with pytest.raises(ConfigError) as raised:
        await found.by_file(str(path))
    assert str(raised.value) == f"malformed kubeconfig in {path}: line 2, column 17: found undefined alias"


async def test_a_file_that_is_not_there_is_not_waited_for(tmp_path):
    found, clock = discovery(cluster_info())
    with pytest.raises(StartError, match="cannot read --discovery-file"):
        await found.by_file(str(tmp_path / "none"))
    assert clock.elapsed == 0


BOTH = "specifying a root certificates file with the insecure flag is not allowed"
INSECURE = json.dumps({"clusters": [{"name": "", "cluster": CLUSTER | {"insecure-skip-tls-verify": True}}]})


async def test_an_authority_and_no_verification_are_refused_in_client_gos_words(tmp_path):
    (tmp_path / "discovery.conf").write_text(INSECURE)
    found, _ = discovery(cluster_info(INSECURE))
    with pytest.raises(ConfigError, match=BOTH):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    with pytest.raises(ConfigError, match=BOTH):
        await found.by_file(str(tmp_path / "discovery.conf"))


@pytest.mark.parametrize(
    "content", [b"[" * 2**19, b'{"data": {"kubeconfig": []}}', b'{"data": 7}', b"\xff"], ids=["deep", "list", "7", "ff"]
)
async def test_an_answer_that_is_no_cluster_info_is_no_more_than_that(content):
    found, _ = discovery(httpx.Response(200, content=content), patience=0)
    with pytest.raises((StartError, ConfigError)):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)


@pytest.mark.parametrize("endpoint", ["[::1:6443", "a b:6443", "host:99999999", "\u00e9\u2603:1"])
async def test_an_address_that_is_none_is_told(endpoint):
    found = Discovery(clock=Impatient(), timeout_seconds=0.0)
    with pytest.raises(StartError, match="couldn't validate the identity"):
        await found.by_token(endpoint, TOKEN, PIN)


async def test_a_redirect_is_not_followed():
    found, _ = discovery(httpx.Response(302, headers={"Location": "https://192.0.2.7/file"}), patience=0)
    with pytest.raises(StartError, match="HTTP 302"):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    with pytest.raises(StartError, match="HTTP 302"):
        await found.by_file("https://192.0.2.9/file")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
async def test_what_is_compressed_is_not_unpacked(encoding):
    def answer(request):
        assert request.headers["accept-encoding"] == "identity"
        body = httpx.ByteStream(gzip.compress(cluster_info().content))
        return httpx.Response(200, headers={"Content-Encoding": encoding}, stream=body)

    found = Discovery(clock=Impatient(), timeout_seconds=0.0, transport=httpx.MockTransport(answer))
    with pytest.raises(StartError, match="the answer is compressed"):
        await found.by_token("192.0.2.1:6443", TOKEN, PIN)


@pytest.mark.parametrize("key", ["server", "certificate-authority", "certificate-authority-data"])
async def test_aliases_of_aliases_are_not_unfolded(tmp_path, key):
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 12)]
    cluster = f"clusters: [{{name: '', cluster: {{server: 'https://127.0.0.1:1', {key}: *l11}}}}]"
    (tmp_path / "discovery.conf").write_text("\n".join(["l0: &l0 [x, x]", *levels, cluster]))
    found, _ = discovery(cluster_info())
    with pytest.raises(ConfigError, match="malformed kubeconfig"):
        await found.by_file(str(tmp_path / "discovery.conf"))


class Endless(httpx.AsyncByteStream):
    """A body without an end: as fast as it is read, or a byte now and then."""

    def __init__(self, *, part=b"x" * 2**16, pause=0.0):
        self.part, self.pause, self.sent = part, pause, 0

    async def __aiter__(self):
        while True:
            await asyncio.sleep(self.pause)
            self.sent += len(self.part)
            yield self.part


@pytest.mark.parametrize("place", ["token", "https file", "server of a file"])
async def test_a_body_without_an_end_is_read_no_further_than_the_limit(place, tmp_path):
    body = Endless()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=body))
    found = Discovery(clock=Impatient(), timeout_seconds=0.0, transport=transport)
    with pytest.raises(StartError, match="the answer is larger than 1048576 bytes"):
        await discovered(found, place, tmp_path)
    assert body.sent <= 2**20 + 2**16


@pytest.mark.parametrize("place", ["token", "https file", "server of a file"])
async def test_a_body_that_drips_does_not_outlast_the_deadline(place, tmp_path):
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Endless(part=b"x", pause=0.01)))
    found = Discovery(clock=SystemClock(), timeout_seconds=0.3, transport=transport)
    with pytest.raises(
        StartError, match=r"couldn't validate the identity of the API Server: no whole answer within 0\.3s"
    ):
        await discovered(found, place, tmp_path)


async def discovered(found, place, folder):
    if place == "token":
        return await found.by_token("192.0.2.1:6443", TOKEN, PIN)
    (folder / "discovery.conf").write_text(KUBECONFIG)
    return await found.by_file("https://192.0.2.9/file" if place == "https file" else str(folder / "discovery.conf"))


async def test_a_file_without_an_end_is_refused():
    found, _ = discovery(cluster_info())
    with pytest.raises(StartError, match="/dev/zero is larger than 1048576 bytes"):
        await found.by_file("/dev/zero")


async def test_an_authority_without_an_end_is_refused(tmp_path):
    endless = {"server": "https://192.0.2.1:6443", "certificate-authority": "/dev/zero"}
    (tmp_path / "discovery.conf").write_text(json.dumps({"clusters": [{"name": "", "cluster": endless}]}))
    found, _ = discovery(cluster_info())
    with pytest.raises(StartError, match="/dev/zero is larger than 1048576 bytes"):
        await found.by_file(str(tmp_path / "discovery.conf"))


async def test_a_kubeconfig_from_elsewhere_names_no_file_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "https:" / "192.0.2.9").mkdir(parents=True)
    (tmp_path / "https:" / "192.0.2.9" / "ca.crt").write_text(PEM)
    cluster = {"server": "https://192.0.2.1:6443", "certificate-authority": "ca.crt"}
    document = {"clusters": [{"name": "", "cluster": cluster}]}
    found, _ = discovery(httpx.Response(200, json=document), cluster_info())
    with pytest.raises(ConfigError, match="cannot name a certificate-authority on this machine"):
        await found.by_file("https://192.0.2.9/file")


async def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found, clock = discovery(cluster_info(), patience=5.0)
    with pytest.raises(StartError, match="pipe is empty"):
        await found.by_file(str(tmp_path / "pipe"))
    assert clock.elapsed == pytest.approx(5)


async def test_a_pipe_whose_writer_falls_silent_does_not_outlast_the_deadline():
    reader, writer = os.pipe()
    os.write(writer, b"clusters:")
    found = Discovery(clock=SystemClock(), timeout_seconds=0.3)
    with pytest.raises(StartError, match=r"no whole answer within 0\.3s"):
        await found.by_file(f"/dev/fd/{reader}")
    os.close(reader)
    os.close(writer)


async def test_a_pipe_may_tell_of_a_cluster_in_its_own_time():
    reader, writer = os.pipe()
    found, _ = discovery(cluster_info())
    finding = asyncio.create_task(found.by_file(f"/dev/fd/{reader}"))
    for part in (KUBECONFIG[:20], KUBECONFIG[20:]):
        await asyncio.sleep(0.1)
        os.write(writer, part.encode())
    os.close(writer)
    assert (await finding).server == "https://192.0.2.1:6443"
    os.close(reader)
