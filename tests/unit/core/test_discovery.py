import hashlib

import pytest

from agent.core.discovery import Distrusted, Token, check_pins, parse_pins, parse_token, signed_kubeconfig
from agent.core.errors import ConfigError
from agent.core.x509 import read_certificates
from tests.unit.core.certificates import EC_KEY, made, spki
from tests.unit.core.jws import CONTENT, TOKEN, signature


def data(text):
    return {"kubeconfig": CONTENT, f"jws-kubeconfig-{TOKEN.id}": text}


def test_a_kubeconfig_that_was_signed_with_the_token_is_trusted():
    assert signed_kubeconfig(data(signature()), TOKEN) == CONTENT


def test_what_kubernetes_itself_signed_is_trusted():
    # cluster-bootstrap/token/jws/jws_test.go
    text = "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
    content = "Hello from the other side. I must have called a thousand times."
    told = {"kubeconfig": content, "jws-kubeconfig-joshua": text}
    assert signed_kubeconfig(told, Token("joshua", "my voice is my passcode")) == content


@pytest.mark.parametrize(
    "text",
    [
        signature(secret="fedcba9876543210"),
        signature(content="other"),
        signature(kid="another"),
        signature(alg="none"),
        signature().replace("..", "."),
        signature()[:-4],
        "..",
        "nonsense",
        "é..é",
    ],
)
def test_any_other_signature_is_refused(text):
    with pytest.raises(Distrusted, match="failed to verify JWS signature"):
        signed_kubeconfig(data(text), TOKEN)


def test_a_token_that_nothing_is_signed_with_may_still_come():
    assert signed_kubeconfig({"kubeconfig": CONTENT}, TOKEN) is None


def test_a_cluster_without_cluster_info_is_refused():
    with pytest.raises(Distrusted, match="isn't set up for token bootstrapping"):
        signed_kubeconfig({}, TOKEN)


@pytest.mark.parametrize("text", ["", "abcdef", "abcdef.0123", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef\n"])
def test_a_wrong_token_is_not_repeated_in_the_message(text):
    with pytest.raises(ConfigError) as raised:
        parse_token(text)
    assert not text or text not in str(raised.value)


def test_a_token_never_shows_its_secret():
    assert TOKEN.secret not in f"{TOKEN} {TOKEN!r} {[TOKEN]}"


def test_a_cluster_is_known_by_the_hash_of_its_authoritys_key():
    pin = f"SHA256:{hashlib.sha256(spki(EC_KEY)).hexdigest().upper()}"
    check_pins(read_certificates(made()), parse_pins([f"sha256:{'0' * 64}", pin]))
    with pytest.raises(Distrusted, match="none of the public keys"):
        check_pins(read_certificates(made()), parse_pins([f"sha256:{'0' * 64}"]))
    with pytest.raises(Distrusted, match="none of the public keys"):
        check_pins(read_certificates(made()), frozenset())


@pytest.mark.parametrize("text", ["", "sha256", "md5:00", "sha256:00", f"sha256:{'x' * 64}", "sha256:a:b"])
def test_a_pin_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match="invalid discovery token CA certificate hash"):
        parse_pins([text])
