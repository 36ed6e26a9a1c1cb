import base64
import hashlib
import re

from agent.adapters.server.status_page import StatusPage
from agent.core.fleet_view import FleetView
from agent.core.node_view import ConditionRow, LoopFailure, NodeView, Renewal, ResourceRow, Setting, SignalRow

EVIL = "<script>alert('x')</script>\" onload=\"x"
NODE = NodeView(
    node_name="n1",
    version="v1.36.3",
    node={},
    conditions=[ConditionRow("Ready", "True", "KubeletReady", "kubelet is posting ready status", False, [])],
    renewals=[Renewal(20.0, "ok"), Renewal(10.0, "failed"), Renewal(1.0, "late")],
    lease_age_seconds=1.0,
)


def test_it_says_in_words_what_it_shows_in_colours():
    html = StatusPage().html(NODE)
    assert '<span id="state" class="pill good">Ready</span>' in html
    assert html.count('<rect class="beat-') == 3
    assert "renewals of the last 10 minutes: 1 renewed in time, 1 renewed late, 1 failed" in html
    assert "<title>10 s ago: failed</title>" in html
    assert "no renewal was missed" in html
    assert "<title>n1 · Ready</title>" in html


def test_what_is_wrong_comes_first():
    html = StatusPage().html(NodeView(node_name="n1", node={}, faults={"lease": "no success for 41s"}))
    assert 'class="pill bad">unhealthy<' in html
    assert html.index("no success for 41s") < html.index("Heartbeat</h2>")


def test_nothing_that_others_wrote_becomes_markup():
    html = StatusPage([Setting(EVIL, EVIL, EVIL)]).html(
        NodeView(
            node_name=EVIL,
            version=EVIL,
            node={},
            conditions=[ConditionRow(EVIL, EVIL, EVIL, EVIL, True, [SignalRow(EVIL, EVIL, 0.5, EVIL, 0.1, True)])],
            resources=[ResourceRow(EVIL, EVIL, EVIL, 0.5)],
            faults={EVIL: EVIL},
            last_trouble=LoopFailure(3.0, EVIL, EVIL),
        )
    )
    assert html.count("<script>") == 1
    assert 'onload="' not in html
    assert "alert(&#x27;x&#x27;)" in html


def test_a_placeholder_in_what_others_wrote_stays_one():
    assert "&lt;!--settings--&gt;" in StatusPage().html(NodeView(node_name="<!--settings-->"))


def test_only_its_own_style_and_script_are_allowed_and_nothing_from_outside():
    page = StatusPage([Setting("maxPods", "7", "--max-pods")])
    html, policy = page.html(NODE), page.headers()["Content-Security-Policy"]
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert " style=" not in html  # the policy would ignore it
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", html)
    assert "<tr><td>maxPods</td><td>7</td><td>--max-pods</td></tr>" in html


def test_a_fleet_is_shown_by_the_states_of_its_nodes_however_many_they_are():
    view = FleetView(name=EVIL, seconds=60.0, states={"Ready": 998, "NotReady": 2}, lease_ages=[1.0] * 999 + [12.0])
    html = StatusPage().html(view)
    assert EVIL not in html
    assert '<span id="state" class="pill bad">998 of 1000 Ready</span>' in html
    assert html.count('<svg class="bar"') == 4  # two states, and two ages
    assert "NotReady: 2 of 1000" in html
    assert "&lt;5s: 999 of 1000" in html
    assert "The oldest lease was renewed 12 s ago" in html
    assert '<span id="state" class="pill good">no nodes</span>' in StatusPage().html(
        FleetView(name="f", seconds=0, states={})
    )
