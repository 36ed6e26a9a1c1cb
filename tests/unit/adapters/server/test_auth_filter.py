import asyncio
import base64
from datetime import timedelta

import pytest

from agent.adapters.server.auth_filter import AuthFilter, Caller, Denial
from agent.core.routing import NodePath
from agent.klog import V2
from tests.cluster.pairs import authority, client_pair
from tests.fakes import FakeClock, FakeReviews, settle
from tests.settings import Serving

pytestmark = pytest.mark.anyio

UNAUTHORIZED = Denial(401, "Unauthorized")
STRICT = Serving(anonymous=False, token_reviews=True, access_reviews=True, client_ca_file="/ca.crt")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def reviews():
    found = FakeReviews()
    found.tokens = {"t": "jane"}
    found.rights = {("jane", "get", "metrics"), ("jane", "get", "proxy")}
    return found


def auth_filter(reviews, clock, serving=STRICT):
    return AuthFilter(serving=serving, node_of=lambda path: NodePath("n1", path), reviews=reviews, clock=clock)


def bearer(token="t"):  # noqa: S107
    return Caller(authorization=f"Bearer {token}")


async def test_who_shows_nothing_is_unauthorized_or_anonymous(reviews, clock):
    assert await auth_filter(reviews, clock).denial(Caller(), "GET", "/metrics") == UNAUTHORIZED
    reviews.rights.add(("system:anonymous", "get", "metrics"))
    relaxed = Serving(anonymous=True, access_reviews=True)
    assert await auth_filter(reviews, clock, relaxed).denial(Caller(), "GET", "/metrics") is None


async def test_a_bad_token_is_not_taken_for_anonymous(reviews, clock):
    serving = Serving(anonymous=True, token_reviews=True)
    assert await auth_filter(reviews, clock, serving).denial(bearer("nonsense"), "GET", "/pods") == UNAUTHORIZED


async def test_where_tokens_are_not_reviewed_they_mean_nothing(reviews, clock):
    assert await auth_filter(reviews, clock, Serving(anonymous=True)).denial(bearer("nonsense"), "GET", "/pods") is None
    assert reviews.asked == []


async def test_the_first_subresource_that_is_allowed_is_enough(reviews, clock):
    assert await auth_filter(reviews, clock).denial(bearer(), "GET", "/pods") is None
    assert reviews.asked == ["token", "pods", "proxy"]


async def test_a_no_names_all_that_was_tried(reviews, clock):
    reviews.rights = set()
    words = "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert await auth_filter(reviews, clock).denial(bearer(), "GET", "/pods") == Denial(403, words)


async def test_answers_are_remembered_for_their_time_a_yes_longer_than_a_no(reviews, clock):
    auth = auth_filter(reviews, clock)
    for _ in range(3):
        assert await auth.denial(bearer(), "GET", "/metrics") is None
        assert (await auth.denial(bearer(), "GET", "/stats/")).status == 403
    assert reviews.asked == ["token", "metrics", "stats"]
    clock.elapsed = 31  # the no is forgotten
    await auth.denial(bearer(), "GET", "/metrics")
    await auth.denial(bearer(), "GET", "/stats/")
    assert reviews.asked[3:] == ["stats"]
    clock.elapsed = 121  # the token, too
    await auth.denial(bearer(), "GET", "/metrics")
    assert reviews.asked[4:] == ["token"]
    clock.elapsed = 301
    await auth.denial(bearer(), "GET", "/metrics")
    assert reviews.asked[5:] == ["token", "metrics"]


async def test_unknown_tokens_are_remembered_too_but_failures_are_not(reviews, clock):
    auth = auth_filter(reviews, clock)
    for _ in range(2):
        assert await auth.denial(bearer("x"), "GET", "/metrics") == UNAUTHORIZED
    assert reviews.asked == ["token"]
    reviews.away = 2
    asked = asyncio.create_task(auth.denial(bearer(), "GET", "/metrics"))
    await clock.advance(1)
    assert await asked == UNAUTHORIZED
    assert await auth.denial(bearer(), "GET", "/metrics") is None


async def test_a_review_that_fails_is_asked_once_more(reviews, clock):
    reviews.away = 1
    asked = asyncio.create_task(auth_filter(reviews, clock).denial(bearer(), "GET", "/metrics"))
    await clock.advance(1)
    assert await asked is None


async def test_without_the_api_server_what_it_said_before_counts_and_nothing_else(reviews, clock):
    auth = auth_filter(reviews, clock)
    assert await auth.denial(bearer(), "GET", "/metrics") is None
    reviews.away = 100
    assert await auth.denial(bearer(), "GET", "/metrics") is None
    asked = asyncio.create_task(auth.denial(bearer(), "GET", "/logs/"))
    await clock.advance(1)
    words = "Authorization error (user=jane, verb=get, resource=nodes, subresource=log)"
    assert await asked == Denial(500, words)


async def test_few_reviews_are_asked_for_at_once(reviews, clock):
    answer, under_way = asyncio.Event(), 0

    async def token(_):
        nonlocal under_way
        under_way += 1
        await answer.wait()
        return {"authenticated": False}

    reviews.token = token
    auth = auth_filter(reviews, clock)
    tasks = [asyncio.create_task(auth.denial(bearer(str(number)), "GET", "/pods")) for number in range(50)]
    await settle()
    assert under_way == 8
    answer.set()
    assert set(await asyncio.gather(*tasks)) == {UNAUTHORIZED}


async def test_a_certificate_is_a_user_as_long_as_all_of_its_chain_is_valid(reviews, clock):
    reviews.rights.add(("jane", "get", "log"))
    auth, hour = auth_filter(reviews, clock), timedelta(hours=1)
    root = authority(begin=clock.now() - hour, end=clock.now() + 24 * hour)
    between = authority("between", root, begin=clock.now() - hour, end=clock.now() + 2 * hour)
    short, long = (client_pair("jane", between, begin=clock.now(), end=clock.now() + life * hour) for life in (1, 9))
    shown = [Caller(chain=(pair.der, between.der, root.der)) for pair in (short, long)]
    assert [await auth.denial(caller, "GET", "/logs/") for caller in shown] == [None, None]
    clock.elapsed = 1.5 * 3600
    assert [await auth.denial(caller, "GET", "/logs/") for caller in shown] == [UNAUTHORIZED, None]
    clock.elapsed = 2.5 * 3600
    assert [await auth.denial(caller, "GET", "/logs/") for caller in shown] == [UNAUTHORIZED, UNAUTHORIZED]


async def test_a_certificate_that_makes_no_sense_is_nobodys(reviews, clock):
    pair = client_pair("jane", alternative_names=b"")
    shown = Caller(chain=(pair.der,))
    assert await auth_filter(reviews, clock).denial(shown, "GET", "/metrics") == UNAUTHORIZED


async def test_a_certificate_that_is_no_good_leaves_it_to_the_token(reviews, clock):
    pair = client_pair("jane", begin=clock.now() - timedelta(hours=2), end=clock.now() - timedelta(hours=1))
    both = Caller(chain=(pair.der,), authorization="Bearer t")
    assert await auth_filter(reviews, clock).denial(both, "GET", "/metrics") is None


@pytest.mark.parametrize("token", ["\udcff", "t\udcff", "\udc9b\udc8a"])
async def test_a_token_that_is_no_utf8_is_unauthorized_and_nobody_is_asked(reviews, clock, token, caplog):
    for serving in (STRICT, Serving(anonymous=True, token_reviews=True)):
        assert await auth_filter(reviews, clock, serving).denial(bearer(token), "GET", "/metrics") == UNAUTHORIZED
    assert reviews.asked == []
    assert caplog.records == []


def websocket(*tokens, others=("v5.channel.k8s.io",)):
    """Who brings tokens among the protocols of a WebSocket."""
    marked = [
        "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        for token in tokens
    ]
    return Caller(protocols=(",".join([*marked, *others]),))


async def test_a_websocket_may_bring_one_token_beside_another_protocol(reviews, clock):
    assert await auth_filter(reviews, clock).denial(websocket("t"), "GET", "/metrics") is None
    relaxed = Serving(anonymous=True, token_reviews=True)
    for wrong in (websocket("t", "t"), websocket("t", others=()), websocket("x")):
        assert await auth_filter(reviews, clock, relaxed).denial(wrong, "GET", "/metrics") == UNAUTHORIZED
    assert await auth_filter(reviews, clock, relaxed).denial(websocket(), "GET", "/metrics") is None  # anonymous
    deaf = Serving(anonymous=True)
    assert await auth_filter(reviews, clock, deaf).denial(websocket("t", "t"), "GET", "/metrics") is None


async def test_a_header_that_is_no_good_leaves_it_to_the_websocket(reviews, clock):
    both = websocket("t")._replace(authorization="Bearer nonsense")
    assert await auth_filter(reviews, clock).denial(both, "GET", "/metrics") is None


async def test_a_missing_right_to_review_is_reported_once_and_again_when_it_was_there_between(reviews, clock, caplog):
    missing = "Our credentials may not ask the API server about callers, who are refused here"
    pair = client_pair("jane", begin=clock.now(), end=clock.now() + timedelta(days=1))
    auth, certified = auth_filter(reviews, clock), Caller(chain=(pair.der,))
    reviews.is_forbidden = True
    for _ in range(3):
        clock.elapsed += 120
        assert await auth.denial(bearer(), "GET", "/metrics") == UNAUTHORIZED
        refused = await auth.denial(certified, "GET", "/metrics")
        assert refused is not None
        assert refused.status == 500  # as a kubelet
    assert [record.msg for record in caplog.records] == [missing] * 2
    rights = [record.args["right"] for record in caplog.records]
    assert rights == ["create tokenreviews", "create subjectaccessreviews"]
    reviews.is_forbidden = False
    assert await auth.denial(bearer(), "GET", "/metrics") is None
    reviews.is_forbidden = True
    clock.elapsed += 600
    assert await auth.denial(bearer(), "GET", "/metrics") == UNAUTHORIZED
    assert [record.args["right"] for record in caplog.records[2:]] == ["create tokenreviews"]


async def test_what_is_logged_about_callers_is_one_line_a_minute(reviews, clock, caplog):
    caplog.set_level(V2, "agent")
    reviews.tokens = {"t": "jane\x1b[31m\nforged"}
    auth = auth_filter(reviews, clock)
    for number in range(20):
        await auth.denial(bearer(f"x{number}"), "GET", "/metrics")
        await auth.denial(bearer(), "GET", "/metrics")
    assert [record.msg for record in caplog.records] == [
        "Unable to authenticate the request due to an error",
        "Forbidden",
    ]
    assert caplog.records[-1].args["user"] == "jane\\x1b[31m\\nforged"
