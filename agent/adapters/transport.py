"""What a connection to the API server needs below HTTP: a proxy, the addresses of a host, keepalive."""

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from agent.adapters.http1 import HttpError
from agent.adapters.reasons import connect_reason, lookup_reason
from agent.ports import StartError

_RESOLVER_SECONDS = 3.0
_NEXT_ADDRESS_SECONDS = 0.25  # how long one address of a host may be silent before the next is tried beside it
# As Go's HTTP/2: dead after 45 s without an answer
_KEEPALIVE_IDLE_SECONDS, _KEEPALIVE_INTERVAL_SECONDS, _KEEPALIVE_PROBES = 30, 5, 3


def proxy_for(server: str, proxy_url: str | None) -> str | None:
    """Return the proxy for a server, None if there is none. Raises StartError for one that cannot be used.

    As client-go: the proxy-url of the kubeconfig, else HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
    """
    proxy = proxy_url or _from_environment(server)
    if proxy is None:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if fault := _fault(proxy):
        where = "proxy-url" if proxy_url else "HTTPS_PROXY"
        raise StartError(f"{where}: a proxy is http://HOST:PORT or https://HOST:PORT here, {fault}")
    return proxy


def _fault(proxy: str) -> str:
    """Return why a proxy cannot be used, empty if it can; not with the whole URL, which may hold a password."""
    try:
        url = urlsplit(proxy)
        is_usable = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # its text has more of the URL than may be logged
        return "and what is there is no URL; in a password, signs like / and # are written as %2F and %23"
    return "" if is_usable else f"not {url.scheme}://{url.hostname}"


def _from_environment(server: str) -> str | None:
    url = urlsplit(server)
    host = url.hostname or ""
    if _is_this_machine(host) or _is_excepted(host, url.port):
        return None
    return _variable(f"{url.scheme}_proxy") or None


def _variable(name: str) -> str:
    """Return a variable of the environment by its name in small letters, which wins, or in capitals."""
    value = os.environ.get(name)
    return os.environ.get(name.upper(), "") if value is None else value


def _is_this_machine(host: str) -> bool:
    """Return whether Go never uses a proxy for a host, whatever the environment says."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_excepted(host: str, port: int | None) -> bool:
    """Return whether NO_PROXY has the host, a domain it is in, or a network; `*` is for all hosts."""
    entries = {entry.strip().lower() for entry in _variable("no_proxy").split(",")} - {""}
    names = (host, f"{host}:{port}")
    return any(entry == "*" or _is_in_domain(names, entry) or _is_within(host, entry) for entry in entries)


def _is_in_domain(names: tuple[str, ...], entry: str) -> bool:
    domain = entry.lstrip(".")
    return any(name == domain or name.endswith(f".{domain}") for name in names)


def _is_within(host: str, network: str) -> bool:
    if "/" not in network:
        return False
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


class DedicatedResolver:
    """Resolves names in a thread of its own; while the system's resolver does not answer, the last answer is used.

    That of the event loop shares its threads with every reading of the host, and waits for a free one.
    """

    def __init__(self, deadline_seconds: float = _RESOLVER_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="resolver")
        self._pending: dict[str, asyncio.Future[list[AddrInfoType]]] = {}
        self._last: dict[tuple[str, int], list[AddrInfoType]] = {}

    async def resolve(self, host: str, port: int) -> list[AddrInfoType]:
        """Return the addresses of a host; raise OSError if there are none."""
        try:
            addresses = await self._ask(host, port)
        except (OSError, TimeoutError):
            if last := self._last.get((host, port)):
                return last
            raise
        self._last[host, port] = addresses
        return addresses

    def close(self) -> None:
        """End the thread without waiting for a lookup that hangs."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, host: str, port: int) -> list[AddrInfoType]:
        lookup = self._pending.get(host)
        if lookup is None or lookup.done():  # one that hangs is not started again
            run = asyncio.get_running_loop().run_in_executor
            lookup = self._pending[host] = run(self._thread, _look_up, host, port)
            lookup.add_done_callback(_retrieve_error)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                return await asyncio.shield(lookup)
        except TimeoutError:
            raise OSError(f"no answer from the resolver within {self._deadline_seconds:g}s") from None


def _look_up(host: str, port: int, flags: int = 0) -> list[AddrInfoType]:
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
    except UnicodeError as error:  # an empty label, or one that is too long
        raise socket.gaierror(socket.EAI_NONAME, "no such host") from error


def _retrieve_error(lookup: asyncio.Future[list[AddrInfoType]]) -> None:
    """Retrieve the error of a lookup whose caller may be gone, so that asyncio does not log it."""
    if not lookup.cancelled():
        lookup.exception()


async def connect(resolver: DedicatedResolver, host: str, port: int) -> socket.socket:
    """Connect to the first address of a host that answers; raise HttpError, in the words of Go, if none does."""
    try:
        addresses = _look_up(host, port, socket.AI_NUMERICHOST)
    except OSError:  # a name, then
        try:
            addresses = await resolver.resolve(host, port)
        except OSError as error:
            raise HttpError(f"dial tcp: lookup {host}: {lookup_reason(error)}") from error
    try:
        connection = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS)
    except OSError as error:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise HttpError(f"dial tcp {address}: connect: {connect_reason(error)}") from error
    _enable_keepalive(connection)
    return connection


def _enable_keepalive(connection: socket.socket) -> None:
    """Have the kernel notice that the peer of a silent connection is gone: a watch may be silent for a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _KEEPALIVE_PROBES)
