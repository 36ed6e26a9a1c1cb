"""`fake-kubelet healthcheck`: asks /healthz of the daemon on this machine, where there is no curl."""

import asyncio
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import httpx

from agent.adapters.fetch import fetch, fetch_reason
from agent.adapters.settings.effective import from_flags
from agent.adapters.tls import client_context
from agent.core.text import printable

_SECONDS = 5.0


def ask_healthz(flags: Mapping[str, Any]) -> tuple[bool, str]:
    """Ask /healthz at the address that the daemon's flags name. Returns whether it is healthy, and a message."""
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
        return False, f"nobody answers at {url}: {fetch_reason(error, url)}"
    text = printable(answer.text, keep="\n")  # any process may listen there
    if answer.status == httpx.codes.OK:
        return True, text
    reasons = [line.removeprefix("[-]") for line in text.splitlines() if line.startswith("[-]")]
    return False, "\n".join(reasons) or f"{url} answers {answer.status}"


def _reachable(address: str) -> str:
    """Return the host to connect to; a daemon that listens on any address listens on loopback, too."""
    ip = ip_address(address)
    if ip.is_unspecified:
        ip = ip_address("127.0.0.1" if ip.version == 4 else "::1")
    return str(ip) if ip.version == 4 else f"[{ip}]"
