"""What a connection needs below HTTP: which proxy for which API server, and a resolver that does not block it."""

import socket
import threading

import pytest

from agent.adapters.transport import DedicatedResolver, proxy_for
from agent.ports import StartError

PROXY = "http://proxy:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    return monkeypatch


@pytest.mark.parametrize(
    ("server", "exceptions", "proxy"),
    [
        pytest.param("https://10.1.2.3:6443", "", PROXY, id="an address"),
        pytest.param("https://api.example.com:6443", "", PROXY, id="a name"),
        pytest.param("http://api.example.com", "", None, id="HTTPS_PROXY is not for plain HTTP"),
        pytest.param("https://127.0.0.1:6443", "", None, id="this machine"),
        pytest.param("https://[::1]:6443", "", None, id="this machine, IPv6"),
        pytest.param("https://localhost:6443", "", None, id="this machine by name"),
        pytest.param("https://api.example.com:6443", "api.example.com", None, id="the name is excepted"),
        pytest.param("https://api.example.com:6443", "other, .example.com", None, id="its domain is excepted"),
        pytest.param("https://api.example.com:6443", "api.example.com:443", PROXY, id="another port is excepted"),
        pytest.param("https://10.1.2.3:6443", "10.0.0.0/8", None, id="its network is excepted"),
        pytest.param("https://10.1.2.3:6443", "10.2.0.0/16,nonsense/x", PROXY, id="another network is excepted"),
        pytest.param("https://api.example.com", "*", None, id="all are excepted"),
        pytest.param("https://api.example.com", "other,*", None, id="all are excepted, as in Go"),
        pytest.param("https://API.example.com", "Example.COM", None, id="in another case"),
        pytest.param("https://myexample.com", "example.com", PROXY, id="a domain with the same end"),
        pytest.param("https://api.example.com:6443", "example.com:6443", None, id="its domain with the port"),
        pytest.param("https://10.1.2.3:6443", "10.1.2.3", None, id="the address is excepted"),
        pytest.param("https://10.1.2.3:6443", " , ", PROXY, id="nothing is excepted"),
    ],
)
def test_the_environment_names_a_proxy_as_for_a_kubelet(environment, server, exceptions, proxy):
    environment.setenv("NO_PROXY", exceptions)
    assert proxy_for(server, None) == proxy


def test_a_variable_in_small_letters_wins_even_if_it_is_empty(environment):
    environment.setenv("https_proxy", "http://small:1")
    assert proxy_for("https://10.1.2.3", None) == "http://small:1"
    environment.setenv("https_proxy", "")
    assert proxy_for("https://10.1.2.3", None) is None


def test_the_kubeconfig_wins_over_the_environment(environment):
    environment.setenv("NO_PROXY", "*")
    assert proxy_for("https://10.1.2.3", "http://other:1") == "http://other:1"


def test_a_proxy_without_a_scheme_is_an_http_proxy(environment):
    environment.setenv("HTTPS_PROXY", "proxy:3128")
    assert proxy_for("https://10.1.2.3", None) == PROXY


def test_a_proxy_that_cannot_be_used_is_refused_without_telling_its_password():
    with pytest.raises(StartError, match=r"proxy-url: a proxy is http://HOST:PORT .* not socks5://proxy") as caught:
        proxy_for("https://10.1.2.3", "socks5://user:secret@proxy:1080")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("password", ["secret/", "secret#", "secret\u2100"], ids=["slash", "hash", "letter-like sign"])
def test_a_proxy_that_is_no_url_is_refused_without_telling_its_password(password):
    with pytest.raises(StartError, match=r"proxy-url: a proxy is http://HOST:PORT .* no URL; .* %2F and %23") as caught:
        proxy_for("https://10.1.2.3", f"http://user:{password}@proxy:1080")
    assert "secret" not in str(caught.value)


@pytest.mark.anyio
async def test_where_the_resolver_is_silent_the_last_answer_stands(monkeypatch):
    resolver, release = DedicatedResolver(deadline_seconds=0.5), threading.Event()
    try:
        last = await resolver.resolve("localhost", 80)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait() and [])
        assert await resolver.resolve("localhost", 80) == last
        with pytest.raises(OSError, match="no answer from the resolver"):
            await resolver.resolve("unlast.invalid", 80)
    finally:
        release.set()
        resolver.close()
