"""Each endpoint for each identity, on a real kubelet and on ours: the same status, and the same words for a no."""

import http.client
import secrets
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cluster import framing
from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NOBODY, NODES, Answer, Identity, bearer
from tests.cluster.audit import requests_of
from tests.cluster.control_plane import ControlPlane
from tests.cluster.framing import CASES, STRICTER, Case
from tests.cluster.identities import account, everybody
from tests.cluster.malformed import stranger
from tests.cluster.pairs import Pair, authority, client_pair
from tests.cluster.ports import free_ports
from tests.cluster.proxy import FaultProxy, through
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually

ENDPOINTS = (
    *("GET /pods", "GET /runningpods/", "GET /stats/summary", "POST /stats/summary", "GET /configz"),
    *("GET /healthz", "GET /healthz/ping", "GET /healthz/log", "GET /healthz/syncloop", "GET /healthz?verbose"),
    *("GET /metrics", "GET /metrics/cadvisor", "GET /metrics/resource", "GET /metrics/probes", "GET /metrics/slis"),
    *("GET /logs/", "GET /logs/no-such-file", "GET /logs", "GET /logs/../../etc/passwd", "GET /logs/%2e%2e/passwd"),
    *("GET /containerLogs/ns/pod/c", "GET /containerLogs/ns/pod/c?tailLines=x", "GET /containerLogs/ns/pod"),
    *("GET /exec/ns/pod/c", "POST /exec/ns/pod/c?command=ls&output=1", "POST /attach/ns/pod/c?output=1"),
    *("POST /portForward/ns/pod", "POST /run/ns/pod/c?cmd=ls", "GET /run/ns/pod/c", "POST /checkpoint/ns/pod/c"),
    *("GET /debug/pprof/cmdline", "GET /debug/pprof/nonsense", "PUT /debug/flags/v", "GET /debug/flags/v"),
    *(
        "GET /flagz",
        "GET /statusz",
        "GET /",
        "GET /nonsense",
        "GET //pods",
        "POST /pods",
        "DELETE /pods",
        "HEAD /healthz",
    ),
)
_LEAST_CELLS = 60


class Sides(NamedTuple):
    """The two servers, what lies between them and the API server, and who calls them."""

    kubelet: int
    ours: int
    our_name: str
    proxy: FaultProxy
    identities: dict[str, Identity]


@pytest.fixture(scope="module")
def sides(root: None, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """A kubelet and ours, each on its own node, both set up as kubeadm sets a kubelet up."""
    folder, names = (
        tmp_path_factory.mktemp("d"),
        [f"door-{side}-{secrets.token_hex(3)}" for side in ("kubelet", "ours")],
    )
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(control_plane.layout.apiserver))
        files = [through(proxy.port, control_plane.node_kubeconfig(name), folder / f"{name}.conf") for name in names]
        kubelet = stack.enter_context(RealKubelet(control_plane, names[0], folder / "k", kubeconfig=files[0]))
        ours = free_ports(1)[0]
        agent = AgentProcess(
            *kubelet.arguments,
            *(f"--kubeconfig={files[1]}", f"--hostname-override={names[1]}", f"--cert-dir={folder / 'pki'}"),
            *(f"--port={ours}", "--healthz-port=0"),
            log=folder / "agent.log",
        )
        stack.callback(agent.stop)
        agent.start()
        found = {identity.name: identity for identity in everybody(control_plane, folder)}
        for server in (kubelet.port, ours):
            for path in ("/healthz", "/stats/summary"):  # which a kubelet has no figures for at first
                eventually(lambda at=(server, path): found["system:masters"].ask(at[0], "GET", at[1]).status == 200)
        yield Sides(kubelet.port, ours, names[1], proxy, found)
    for name in names:
        control_plane.api.delete(f"{NODES}/{name}")


def told(answer: Answer) -> tuple[int, object]:
    """What has to be the same: the status, the words of a refusal, and where else to go."""
    words = answer.body if 400 <= answer.status < 500 or answer.status == 307 else b""
    return answer.status, (words, answer.headers.get("Allow"), answer.headers.get("Location"))


def asked(identity: Identity, port: int, endpoint: str) -> tuple[int, object]:
    method, _, path = endpoint.partition(" ")
    return told(identity.ask(port, method, path, b"2" if method == "PUT" else b""))


# A kubelet lets these certificates into the handshake (Go's tls.RequestClientCert) and then does not count them: it
# goes on to the token, or answers 401. Python's ssl module can ask for a certificate only if it also ends the handshake
# of one that does not verify (CERT_OPTIONAL). Nobody gets in who would not at a kubelet; see docs/serving.md.
ENDED_IN_THE_HANDSHAKE = ("another CA", "expired", "not yet valid", "a server's")


def is_ended(identity: Identity, port: int, endpoint: str) -> bool:
    """Whether the server answers nothing: with TLS 1.3 the client has sent its request by then."""
    try:
        asked(identity, port, endpoint)
    except (ssl.SSLError, ConnectionError):  # http.client.RemoteDisconnected is one
        return True
    return False


WHO = (
    *("nobody", "garbage token", "no bearer", "no name"),
    *("known, no rights", "system:masters", "API server", "account no-rights", "account metrics", "account stats"),
    *("account proxy", "account get-proxy", "account pods", "account log", "account healthz", "account configz"),
    *("account statusz", "account checkpoint"),
)


@pytest.mark.parametrize("who", WHO)
def test_an_identity_gets_the_same_answers_from_both(sides: Sides, who: str) -> None:
    identity = sides.identities[who]
    theirs = {endpoint: asked(identity, sides.kubelet, endpoint) for endpoint in ENDPOINTS}
    ours = {endpoint: asked(identity, sides.ours, endpoint) for endpoint in ENDPOINTS}
    assert ours == theirs


@pytest.mark.parametrize("who", ENDED_IN_THE_HANDSHAKE)
def test_a_certificate_that_a_kubelet_does_not_count_ends_the_handshake_here(sides: Sides, who: str) -> None:
    identity = sides.identities[who]
    theirs = {asked(identity, sides.kubelet, endpoint)[0] for endpoint in ENDPOINTS}
    assert theirs <= {307, 401, 404}  # what a path is, everybody may know
    assert [endpoint for endpoint in ENDPOINTS if not is_ended(identity, sides.ours, endpoint)] == []


def test_a_token_does_not_help_a_certificate_that_does_not_verify(sides: Sides) -> None:
    """The one caller whom a kubelet serves and we do not."""
    token = sides.identities["account metrics"].headers
    both = Identity("both", sides.identities["another CA"].certificate, token)
    assert both.ask(sides.kubelet, "GET", "/metrics").status == 200
    assert is_ended(both, sides.ours, "GET /metrics")


def test_the_table_is_large_enough_and_knows_all_kinds_of_answers(sides: Sides) -> None:
    assert (len(WHO) + len(ENDED_IN_THE_HANDSHAKE)) * len(ENDPOINTS) >= _LEAST_CELLS
    stranger, powerless, master = (sides.identities[name] for name in ("nobody", "account no-rights", "system:masters"))
    assert [asked(who, sides.ours, "GET /pods")[0] for who in (stranger, powerless, master)] == [401, 403, 200]


def test_the_certificate_chain_is_verified_anew_for_each_connection(
    sides: Sides, control_plane: ControlPlane, tmp_path: Path
) -> None:
    pki = control_plane.layout.pki
    root = Pair.read(pki / "ca.crt", pki / "ca.key")
    between = authority("between", root)
    expired = authority("between", root, end=datetime.now(UTC) - timedelta(minutes=1), like=between)
    pair = client_pair("jane", between, organization="system:masters")
    shown = [
        Identity(name, pair.write(tmp_path, name, *signers))
        for name, signers in (("whole", (between,)), ("cut", ()), ("late", (expired,)))
    ]
    assert [who.ask(sides.kubelet, "GET", "/pods").status for who in shown] == [200, 401, 401]
    assert shown[0].ask(sides.ours, "GET", "/pods").status == 200
    assert [is_ended(who, sides.ours, "GET /pods") for who in shown[1:]] == [True, True]


def test_the_certificate_chain_is_verified_anew_for_each_request(
    sides: Sides, control_plane: ControlPlane, tmp_path: Path
) -> None:
    pki = control_plane.layout.pki
    for seconds in (5, 60):  # the second time for a machine that takes longer than that to ask at all
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        between = authority("brief", Pair.read(pki / "ca.crt", pki / "ca.key"), end=end)
        pair = client_pair("jane", between, organization="system:masters")
        who = Identity("brief", pair.write(tmp_path, "brief", between))
        with who.connect(sides.kubelet) as kubelet, who.connect(sides.ours) as ours:
            both = (kubelet, ours)
            with suppress(OSError):  # a handshake after the end
                first = [status(connection) for connection in both]
                if datetime.now(UTC) < end - timedelta(seconds=1):  # which is told in whole seconds
                    assert first == [200, 200]
                    eventually(lambda both=both: [status(connection) for connection in both] == [401, 401], every=0.5)
                    return
    pytest.fail("no two requests within a minute")


def status(connection: http.client.HTTPConnection) -> int:
    """What /pods is answered with on a connection that stays open."""
    connection.request("GET", "/pods")
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES)
def test_a_request_that_is_framed_badly_is_refused_as_by_a_kubelet(sides: Sides, name: str, case: Case) -> None:
    theirs, ours = (framing.status(port, case.raw, tls=stranger()) for port in (sides.kubelet, sides.ours))
    assert theirs == (case.refusal or 404)
    assert ours == (400 if name in STRICTER else theirs)


def test_rights_that_were_asked_about_a_moment_ago_are_not_asked_about_again(
    sides: Sides, control_plane: ControlPlane
) -> None:
    # The third one has a token that nobody has seen: when he has been asked about, all was asked about the others.
    first, third = account(control_plane, "metrics"), account(control_plane, "metrics")
    since = datetime.now(UTC)
    assert [who.ask(sides.ours, "GET", "/metrics").status for who in (first, first, third)] == [200] * 3
    asked = eventually(lambda: reviews(sides, control_plane, since), lambda found: len(found) >= 4)
    assert Counter(asked) == {"tokenreviews": 2, "subjectaccessreviews": 2}


def reviews(sides: Sides, control_plane: ControlPlane, since: datetime) -> list[str]:
    """What our node has asked the API server about somebody."""
    requests = requests_of(sides.our_name, control_plane.audit_log)
    return [request.target for request in requests if request.target.endswith("reviews") and request.received > since]


@pytest.fixture
def cut_off(sides: Sides, control_plane: ControlPlane) -> Iterator[Callable[[], None]]:
    """Takes the API server away from both; it is back, and both have noticed, before the next test."""
    yield lambda: sides.proxy.set(kill=True, refuse=True)
    sides.proxy.set()
    for port in (sides.kubelet, sides.ours):
        eventually(lambda at=port: account(control_plane, "metrics").ask(at, "GET", "/metrics").status == 200)


def test_without_the_api_server_only_what_it_said_before_counts(
    sides: Sides, control_plane: ControlPlane, cut_off: Callable[[], None], tmp_path: Path
) -> None:
    pki, both = control_plane.layout.pki, (sides.kubelet, sides.ours)
    root, masters = Pair.read(pki / "ca.crt", pki / "ca.key"), "system:masters"
    # Callers of its own, and both servers asked side by side: what was said counts for two minutes from now on.
    metrics, fresh = account(control_plane, "metrics"), bearer("new", "never-seen")
    known, unknown = (
        Identity(name, client_pair(f"{name}-{secrets.token_hex(3)}", root, organization=masters).write(tmp_path, name))
        for name in ("known", "unknown")
    )
    for who in (metrics, known):
        assert [who.ask(port, "GET", "/metrics").status for port in both] == [200, 200]
    cut_off()
    endpoints = ("GET /metrics", "GET /nonsense", "PATCH /pods", "PATCH /logs/")
    questions = [(who, endpoint) for who in (metrics, fresh, NOBODY, known, unknown) for endpoint in endpoints]
    with ThreadPoolExecutor(4) as pool:  # both try for seconds before they say that they cannot know
        answers = pool.map(lambda question: [asked(question[0], port, question[1]) for port in both], questions)
    cells = {(who.name, endpoint): answer for (who, endpoint), answer in zip(questions, answers, strict=True)}
    assert {cell: ours for cell, (_, ours) in cells.items()} == {cell: theirs for cell, (theirs, _) in cells.items()}
    assert {status for _, (status, _) in cells.values()} == {200, 401, 404, 500}
    assert {cell for cell, (_, (status, _)) in cells.items() if status == 200} == {
        (who.name, "GET /metrics") for who in (metrics, known)
    }
