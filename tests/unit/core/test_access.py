import re

import pytest

from agent.core.access import (
    ANONYMOUS,
    TTLCache,
    User,
    access_review_spec,
    bearer_token,
    certified_user,
    is_allowed,
    is_websocket,
    reviewed_user,
    subresources,
    verb,
    websocket_token,
)
from agent.core.x509 import Certificate
from tests.fakes import START


def test_who_shows_nothing_is_not_authenticated():
    assert User("system:anonymous", ("system:unauthenticated",)) == ANONYMOUS


@pytest.mark.parametrize(
    ("path", "tried"),
    [
        ("/pods", ("pods", "proxy")),
        ("/pods/", ("pods", "proxy")),
        ("/podsy", ("proxy",)),
        ("/runningpods/", ("pods", "proxy")),
        ("/healthz/ping", ("healthz", "proxy")),
        ("/configz", ("configz", "proxy")),
        ("/stats/summary", ("stats",)),
        ("/metrics", ("metrics",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/logs/a/b", ("log",)),
        ("/checkpoint/ns/p/c", ("checkpoint",)),
        ("/statusz", ("statusz",)),
        ("/flagz", ("configz",)),
        ("/exec/ns/p/c", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_a_path_asks_for_its_own_subresource_and_for_proxy_where_it_always_did(path, tried):
    assert subresources(path) == tried


@pytest.mark.parametrize(
    ("method", "name"),
    [("GET", "get"), ("POST", "create"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete"), ("HEAD", "")],
)
def test_methods_are_verbs(method, name):
    assert verb(method) == name


def test_a_review_names_the_node_and_everything_known_about_the_user():
    user = User("jane", ("devs", "system:authenticated"), "7", {"k": ("v",)})
    assert access_review_spec(user, "get", "metrics", "n1") == {
        "user": "jane",
        "uid": "7",
        "groups": ["devs", "system:authenticated"],
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "metrics",
            "name": "n1",
        },
    }


def test_a_certificate_is_a_user_in_the_groups_of_its_organizations():
    certificate = Certificate("jane", ("devs",), (), (), START, START, b"")
    user = certified_user(certificate, b"der")
    assert (user.name, user.groups) == ("jane", ("devs", "system:authenticated"))
    (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")


def test_a_certificate_without_a_name_is_nobody():
    assert certified_user(Certificate("", ("devs",), (), (), START, START, b""), b"der") is None


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ({"authenticated": True, "user": {"username": "jane", "groups": ["g"]}}, "jane"),
        ({"authenticated": False}, None),
        ({}, None),
    ],
)
def test_a_token_review_names_somebody_or_nobody(status, name):
    user = reviewed_user(status)
    assert (user and user.name) == name


@pytest.mark.parametrize("status", [{"error": "bad"}, {"authenticated": True}, {"authenticated": True, "user": 3}])
def test_a_token_review_that_makes_no_sense_is_no_answer(status):
    with pytest.raises(ValueError, match=r"bad|nobody"):
        reviewed_user(status)


def test_an_access_review_that_says_yes_and_no_is_no_answer():
    assert is_allowed({"allowed": True})
    assert not is_allowed({"allowed": False, "denied": True})
    with pytest.raises(ValueError, match="both"):
        is_allowed({"allowed": True, "denied": True})


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer tok", "tok"),
        ("bearer tok more", "tok"),
        ("  Bearer tok", "tok"),
        ("Bearer  tok", ""),
        ("Bearer", ""),
        ("Basic dTpw", ""),
        ("", ""),
    ],
)
def test_where_a_token_is_found(header, token):
    assert bearer_token(header) == token


MARK = "base64url.bearer.authorization.k8s.io."
HIDDEN = MARK + "dG9r"  # tok


@pytest.mark.parametrize(
    ("protocols", "token"),
    [
        ((f"v4.channel.k8s.io, {HIDDEN}",), "tok"),
        ((HIDDEN, "v4.channel.k8s.io"), "tok"),
        ((f"{HIDDEN},",), "tok"),  # upstream counts an empty name, too
        ((f"{MARK}dG9rZQ,x",), "toke"),
        ((MARK,), ""),
        ((f"{MARK},x",), ""),
        (("v4.channel.k8s.io",), ""),
        ((), ""),
    ],
)
def test_a_websocket_may_bring_its_token_among_its_protocols(protocols, token):
    assert websocket_token(protocols) == token


@pytest.mark.parametrize(
    ("protocols", "fault"),
    [
        ((HIDDEN,), "missing additional subprotocol"),
        ((f"{HIDDEN},{HIDDEN},x",), "multiple base64.bearer.authorization tokens specified"),
        ((HIDDEN, f"x,{MARK}"), "multiple base64.bearer.authorization tokens specified"),
        ((f"x,{MARK}%%",), "invalid base64.bearer.authorization token encoding"),
        ((f"x,{MARK}dG9r=",), "invalid base64.bearer.authorization token encoding"),
        ((f"x,{MARK}dG9rZ",), "invalid base64.bearer.authorization token encoding"),
        ((f"x,{MARK}dG9\udcff",), "invalid base64.bearer.authorization token encoding"),
        ((f"x,{MARK}_w",), "invalid base64.bearer.authorization token"),  # 0xff
    ],
)
def test_protocols_that_hide_a_token_badly_are_refused_in_upstreams_words(protocols, fault):
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        websocket_token(protocols)


@pytest.mark.parametrize(
    ("upgrade", "connection", "is_one"),
    [
        ("websocket", ["Upgrade"], True),
        ("WebSocket", ["keep-alive", "keep-alive, UPGRADE"], True),
        ("websocket", ["keep-alive"], False),
        ("websocket", [], False),
        ("SPDY/3.1", ["Upgrade"], False),
        ("websocket, SPDY/3.1", ["Upgrade"], False),
        ("", ["Upgrade"], False),
    ],
)
def test_a_websocket_is_asked_for_by_two_headers(upgrade, connection, is_one):
    assert is_websocket(upgrade, connection) is is_one


def test_a_value_expires():
    cache = TTLCache(10)
    cache.put("k", "v", expires_at=5.0)
    assert cache.get("k", 4.9) == "v"
    assert cache.get("k", 5.0) is None
    assert len(cache) == 0


def test_a_full_cache_evicts_the_least_recently_used_value():
    cache = TTLCache(2)
    cache.put("a", 1, expires_at=9.0)
    cache.put("b", 2, expires_at=9.0)
    assert cache.get("a", 0.0) == 1
    cache.put("c", 3, expires_at=9.0)
    assert [cache.get(key, 0.0) for key in "abc"] == [1, None, 3]
