import base64

import pytest

from agent.core.access import (
    User,
    access_question,
    bearer_token,
    certified_user,
    is_allowed,
    reviewed_user,
    subresources,
    verb,
)
from agent.core.x509 import Certificate
from tests.fakes import START


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
    assert access_question(user, "get", "metrics", "n1") == {
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


_HIDDEN = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"tok").decode().rstrip("=")


@pytest.mark.parametrize(
    ("header", "protocols", "token"),
    [
        ("Bearer tok", (), "tok"),
        ("bearer tok more", (), "tok"),
        ("  Bearer tok", (), "tok"),
        ("Bearer  tok", (), ""),
        ("Bearer", (), ""),
        ("Basic dTpw", (), ""),
        ("", (), ""),
        ("", (f"v4.channel.k8s.io, {_HIDDEN}",), "tok"),
        ("", ("base64url.bearer.authorization.k8s.io.%%",), ""),
    ],
)
def test_where_a_token_is_found(header, protocols, token):
    assert bearer_token(header, protocols) == token
