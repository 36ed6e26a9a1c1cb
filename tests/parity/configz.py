"""What a real kubelet makes of a command line: its /configz, or its refusal."""

import http.client
import http.server
import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.cluster.api import bearer
from tests.cluster.command import run
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.real_kubelet import RealKubelet, wait_for_inotify
from tests.cluster.waiting import eventually

_SOMEBODY = bearer("somebody", "t")


class Answer(NamedTuple):
    """How a kubelet took a command line: its effective configuration, or its exit code and last words."""

    config: dict[str, Any] | None
    exit_code: int | None
    said: str


class Machine:
    """A place where real kubelets can be started one after another, with the runtime and the API they need."""

    def __init__(self, binaries: Path, directory: Path, api_port: int) -> None:
        self.directory = directory
        self.kubeconfig = directory / "api.kubeconfig"
        self.kubeconfig.write_text(_kubeconfig(api_port))
        self.ca_file = directory / "pki" / "ca.crt"
        _make_ca(binaries, self.ca_file.parent)
        _make_credential_provider(directory)
        self._kubelet_binary = binaries / "kubelet"
        parts: Any = SimpleNamespace(bin=binaries, ca_file=self.ca_file)
        self._runtime = RealKubelet(parts, "config", directory, kubeconfig=self.kubeconfig)

    @property
    def runtime_endpoint(self) -> str:
        """Where the runtime of this machine listens."""
        return f"unix://{self.directory / 'cri.sock'}"

    def __enter__(self) -> "Machine":
        self._runtime.prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self._runtime.stop()

    def ask(self, arguments: Sequence[str], port: int) -> Answer:
        """Start a kubelet with these arguments until it serves its /configz or ends."""
        kubelet = Process("kubelet", self._command(arguments), log=self.directory / f"kubelet-{port}.log")
        wait_for_inotify()
        kubelet.start()

        def answer() -> Answer | None:
            if config := _configz(port):
                return Answer(config, None, "")
            return None if kubelet.running else Answer(None, kubelet.wait(0), refusal(kubelet.log_text()))

        try:
            return eventually(answer, every=0.05)
        finally:
            kubelet.kill()

    def _command(self, arguments: Sequence[str]) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self._runtime.fakecri.pid}/ns/mnt", "--", *self.run_words(arguments)]

    def run_words(self, arguments: Sequence[str]) -> list[str]:
        """The words that start a kubelet on this machine."""
        return [str(self._kubelet_binary), *arguments]


def refusal(text: str) -> str:
    """The last error in a log, without its header and its quoting; all of it where there is none."""
    found = list(
        re.finditer(r'^E\d{4}.*?\] "command failed" err=(?:"(.*)"$|<\n(.*?)\n >$)', text, re.MULTILINE | re.DOTALL)
    )
    if not found:
        panic = re.search(r"^panic: (.*)$", text, re.MULTILINE)
        return panic[1] if panic else text[-2000:]
    one_line, block = found[-1].groups()
    return one_line.replace('\\"', '"') if one_line else block


def _configz(port: int) -> dict[str, Any] | None:
    try:
        answer = _SOMEBODY.ask(port, "GET", "/configz")
    except (OSError, http.client.HTTPException):
        return None
    return answer.json()["kubeletconfig"] if answer.status == 200 else None


def _kubeconfig(port: int) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    )


def _make_ca(binaries: Path, directory: Path) -> None:
    command = [str(binaries / "kubeadm"), "init", "phase", "certs", "ca", f"--cert-dir={directory}"]
    run([*command, "--kubernetes-version=v1.36.3"])


def _make_credential_provider(directory: Path) -> None:
    """What `--image-credential-provider-*` must find."""
    provider = {"name": "none", "matchImages": ["example.com"], "defaultCacheDuration": "1h"}
    provider |= {"apiVersion": "credentialprovider.kubelet.k8s.io/v1"}
    config = {"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig", "providers": [provider]}
    (directory / "credentials.json").write_text(json.dumps(config))
    program = directory / "bin" / "none"
    program.parent.mkdir()
    program.write_text("#!/bin/false\n")
    program.chmod(0o755)


_NOT_FOUND = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
_REVIEWS = (
    (
        "tokenreviews",
        "authentication.k8s.io/v1",
        "TokenReview",
        {"authenticated": True, "user": {"username": "somebody"}},
    ),
    ("subjectaccessreviews", "authorization.k8s.io/v1", "SubjectAccessReview", {"allowed": True}),
)


class _Server(http.server.ThreadingHTTPServer):
    """One that does not mind a kubelet ending in the middle of a request."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing."""


class _Agreeable(http.server.BaseHTTPRequestHandler):
    """An API that knows every token and allows everything, and has no objects."""

    def do_POST(self) -> None:
        """Yes to every review."""
        self.rfile.read(int(self.headers["Content-Length"]))
        for word, version, kind, status in _REVIEWS:
            if self.path.endswith(word):
                self._answer(201, {"apiVersion": version, "kind": kind, "status": status})
                return
        self._answer(404, _NOT_FOUND)

    def do_GET(self) -> None:
        """Nothing is here."""
        self._answer(404, _NOT_FOUND)

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def agreeable_api() -> Iterator[int]:
    """Serve the API that allows everything; its port."""
    (port,) = free_ports(1)
    with _Server(("127.0.0.1", port), _Agreeable) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield port
        server.shutdown()
        thread.join()
