"""`fake-kubelet healthcheck`: how the daemon on this machine is, for those who have no curl."""

import asyncio
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import httpx

from agent.adapters.fetch import fetch
from agent.adapters.settings.effective import from_flags
from agent.adapters.tls import client_context

_SECONDS = 5.0


def healthcheck(flags: Mapping[str, Any]) -> tuple[bool, str]:
    """Ask /healthz where the daemon's flags say that it listens; whether all is well, and what there is to say."""
    settings = from_flags({name: value for name, value in flags.items() if name != "output"}).kubelet
    port, address = settings["healthzPort"], settings["healthzBindAddress"]
    if not port:
        return False, "healthz is switched off by --healthz-port=0"
    url = f"http://{_reachable(address)}:{port}/healthz"
    try:
        # Not with a default transport: that would load the system's CAs.
        transport = httpx.AsyncHTTPTransport(verify=client_context(verify=False))
        answer = asyncio.run(fetch(url, transport, seconds=_SECONDS))
    except (TimeoutError, httpx.TimeoutException):
        return False, f"{url} does not answer within {_SECONDS:g} s"
    except (httpx.HTTPError, OSError, ValueError) as error:
        return False, f"nobody answers at {url}: {error}"
    text = "".join(
        letter for letter in answer.text if letter.isprintable() or letter == "\n"
    )  # anybody may listen there
    if answer.status == httpx.codes.OK:
        return True, text
    return False, _reasons(text) or f"{url} answers {answer.status}"


def _reachable(address: str) -> str:
    """Where to ask a daemon that listens there: on any address means also on loopback."""
    ip = ip_address(address)
    if ip.is_unspecified:
        ip = ip_address("127.0.0.1" if ip.version == 4 else "::1")
    return str(ip) if ip.version == 4 else f"[{ip}]"


def _reasons(text: str) -> str:
    return "\n".join(line.removeprefix("[-]") for line in text.splitlines() if line.startswith("[-]"))
