"""The pictures of README and docs/, made from the real thing: `make pictures` writes them to docs/images/."""

import asyncio
import html
import io
import re
import struct
import sys
import tempfile
import time
import zlib
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from rich.console import Console
from rich.text import Text

from agent.cli.demo import make_tls
from tests.cluster import build
from tests.cluster.agent_process import AgentProcess
from tests.cluster.command import run
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.ports import free_ports
from tests.cluster.proxy import FaultProxy, through
from tests.cluster.terminal import Terminal
from tests.cluster.waiting import eventually
from tests.docs.page import ROOT
from tests.server.browser import Browser

DEMO, STATUS_PAGE = ROOT / "docs/images/demo.svg", ROOT / "docs/images/status-page.png"
_COLUMNS, _LINES = 108, 36
_PODS = ("web", "cache", "worker")
_DESCRIPTION = b"Description\0"  # of a PNG's text


def demo_svg(kubectl: Path) -> str:
    """The demo on a terminal, with pods on its node."""
    command = [sys.executable, "-m", "agent", "demo"]
    # A short path: a longer one would be more than one line of the terminal.
    with tempfile.TemporaryDirectory(prefix="fk-") as folder, Terminal(command, env={"TMPDIR": folder}) as terminal:
        terminal.resize(columns=_COLUMNS, lines=_LINES)
        kubeconfig = re.findall(r"KUBECONFIG=([\w./-]+)", terminal.wait_for(r"KUBECONFIG=\S+\s.*NodeReady"))[0]
        for pod in _PODS:
            eventually(lambda pod=pod: run([str(kubectl), "--kubeconfig", kubeconfig, "run", pod, "--image=nginx"]))
        frame = _last_frame(terminal.wait_for(rf"KUBECONFIG.*{len(_PODS)} running.*╭.*╰[^╯]*╯"))
    console = Console(record=True, width=_COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(frame))
    svg = console.export_svg(title="fake-kubelet demo")
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # it would be loaded from elsewhere


def demo_outline(svg: str) -> list[str]:
    """The titles in the picture, and the names of what stands right of some of them."""
    by_line: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in re.findall(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        by_line.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = ["".join(text for _, text in sorted(parts)) for _, parts in sorted(by_line.items())]
    outline, title = [], ""
    for line in lines:
        if match := re.match(r"│\s(\w+)?\s+(\w+)", line):
            title = match[1] or title
            outline += [match[1]] if match[1] else []
            outline += [f"{title} {match[2]}"] if title in {"Conditions", "Heartbeat"} else []
    return outline


def status_page(folder: Path, *, seconds: float = 0.0) -> tuple[bytes, list[str]]:
    """The page of a node after so many seconds, with an outage in their midst: as PNG, and its outline."""
    with ExitStack() as life:
        tls, authority = asyncio.run(make_tls("127.0.0.1"))
        cluster = life.enter_context(EmbeddedCluster(ssl_context=tls))
        cluster.write_kubeconfig(folder / "direct", certificate_authority=authority)
        server = urlsplit(yaml.safe_load((folder / "direct").read_text())["clusters"][0]["cluster"]["server"])
        proxy = life.enter_context(FaultProxy(server.port or 0))
        kubeconfig = through(proxy.port, folder / "direct", folder / "kubeconfig")
        healthz = free_ports(1)[0]
        agent = AgentProcess(
            f"--kubeconfig={kubeconfig}", "--hostname-override=edge-1", f"--healthz-port={healthz}", log=folder / "log"
        )
        life.callback(agent.stop)
        agent.start()
        url, browser = f"http://127.0.0.1:{healthz}/", Browser.found(folder)
        eventually(lambda: 'class="pill good">Ready<' in browser.dom(url), every=1)
        time.sleep(seconds / 2)
        if seconds:
            proxy.set(kill=True, refuse=True)
            time.sleep(25)
            proxy.set()
        time.sleep(seconds / 2)
        outline = page_outline(browser.dom(url))
        return _described(browser.screenshot(url, "page.png", size=(780, 1230)), outline), outline


def page_outline(dom: str) -> list[str]:
    """The headings of the page, and the names of its rows."""
    found = re.findall(r"<(h2|dt|code)>(.*?)<", dom)
    return [f"{tag} {text.strip()}" for tag, text in found if not text.startswith("hugepages")]


def described_outline(png: bytes) -> list[str]:
    """The outline that is noted in the picture."""
    _, _, rest = png.partition(_DESCRIPTION)
    return zlib.decompress(rest[1:]).decode().splitlines() if rest else []


def _last_frame(text: str) -> str:
    """What stood last on the terminal, with its colours."""
    frame = text[text.rindex("╭") : text.rindex("╯") + 1]
    return re.sub(r"\x1b\[[\d;?]*[A-LN-Za-ln-z]", "", frame).replace("\r", "")


def _described(png: bytes, outline: list[str]) -> bytes:
    """The picture with its outline as compressed text, right before its end."""
    content = b"zTXt" + _DESCRIPTION + b"\0" + zlib.compress("\n".join(outline).encode())
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    end = png.rindex(b"IEND") - 4
    return png[:end] + chunk + png[end:]


def _write() -> None:
    DEMO.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        DEMO.write_text(demo_svg(build.binaries(build=False) / "kubectl"), "utf-8")
        STATUS_PAGE.write_bytes(status_page(Path(folder), seconds=300)[0])


if __name__ == "__main__":
    _write()
