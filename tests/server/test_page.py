"""The page about the node, in a browser."""

import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from agent.adapters.server.status_page import StatusPage
from agent.core.node_view import NodeView
from tests.cluster.waiting import eventually
from tests.server.browser import Browser


@pytest.fixture
def browser(tmp_path):
    return Browser.found(tmp_path)


def test_the_page_shows_the_node_before_any_script_runs_by_day_and_by_night(watch_node, browser, node_name):
    node = watch_node("--eviction-hard=memory.available<100Mi", "--max-pods=7", "--kube-reserved=cpu=200m")
    url = f"http://127.0.0.1:{node.healthz_port}/"
    eventually(lambda: 'class="pill good">Ready<' in node.health("/").text)
    eventually(lambda: node.health("/").text.count('class="beat-ok"') >= 3)
    for page in (node.health("/").text, browser.dom(url)):  # as it is sent, and as a browser understands it
        assert f"<h1>{node_name}</h1>" in page
        assert page.count('class="beat-ok"') >= 3
        assert "pressure below 100 MiB" in page
        assert "7 of 7" in page  # pods
        assert "<td>maxPods</td><td>7</td><td>--max-pods</td>" in page
    blank = browser.screenshot("about:blank", "blank.png")
    light, dark = browser.screenshot(url, "light.png"), browser.screenshot(url, "dark.png", is_dark=True)
    assert min(len(light), len(dark)) > 4 * len(blank)
    assert light != dark


class _Changing(BaseHTTPRequestHandler):
    """The page of a node that has another name each time."""

    seen = 0

    def do_GET(self):
        if self.path == "/":
            type(self).seen += 1
        page = StatusPage()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        for name, value in page.headers().items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page.html(NodeView(node_name=f"visit-{self.seen}")).encode())

    def log_message(self, *_):
        pass


def test_the_page_keeps_itself_up_to_date_under_its_own_policy(browser):
    with HTTPServer(("127.0.0.1", 0), _Changing) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            dom = browser.dom(f"http://127.0.0.1:{server.server_address[1]}/", after_seconds=6)
        finally:
            server.shutdown()
            thread.join()
    visit = re.search(r"<h1>visit-(\d+)</h1>", dom)[1]
    assert int(visit) >= 2
    assert f"<title>visit-{visit} · not registered</title>" in dom
    assert 'id="stale" class="bad" role="status" hidden=""' in dom
