from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from agent.cli.healthcheck import ask_healthz


@pytest.fixture
def daemon():
    """A server that answers as it is told."""
    answers = {"status": 200, "body": "ok"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(answers["status"])
            self.end_headers()
            for _ in range(answers.get("times", 1)):
                with suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(answers["body"].encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        answers["port"] = server.server_address[1]
        yield answers
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_daemon_that_is_well_is_ok_wherever_it_listens(daemon, address):
    assert ask_healthz({"healthz-port": daemon["port"], "healthz-bind-address": address}) == (True, "ok")


def test_one_that_is_not_is_quoted(daemon):
    daemon |= {"status": 500, "body": "[+]ping ok\n[-]lease failed: no success for 41s\nhealthz check failed\n"}
    assert ask_healthz({"healthz-port": daemon["port"]}) == (False, "lease failed: no success for 41s")


def test_what_is_not_for_a_terminal_is_not_printed(daemon):
    daemon |= {"body": "ok\x1b[2J\x07\r"}
    assert ask_healthz({"healthz-port": daemon["port"]}) == (True, "ok\ufffd[2J\ufffd\ufffd")


def test_an_answer_without_an_end_is_not_read_to_it(daemon):
    daemon |= {"body": "x" * 2**16, "times": 100}
    is_well, words = ask_healthz({"healthz-port": daemon["port"]})
    assert not is_well
    assert "the answer is larger than 1048576 bytes" in words


def test_the_port_of_a_config_file_is_asked(daemon, tmp_path):
    file = tmp_path / "kubelet.yaml"
    kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file.write_text(f"{kind}healthzPort: {daemon['port']}\n")
    assert ask_healthz({"config": str(file)}) == (True, "ok")


def test_proxies_are_not_asked_about_this_machine(daemon, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:3128")
    assert ask_healthz({"healthz-port": daemon["port"]}) == (True, "ok")


def test_nobody_there_is_said_with_the_place():
    is_well, words = ask_healthz({"healthz-port": 1})
    assert not is_well
    assert words.startswith("nobody answers at http://127.0.0.1:1/healthz: ")


def test_a_port_that_is_switched_off_is_said():
    assert ask_healthz({"healthz-port": 0}) == (False, "healthz is switched off by --healthz-port=0")
