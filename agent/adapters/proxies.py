"""The proxy on the way to the API server: the kubeconfig's, or the one that the environment names."""

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from agent.ports import StartError


def proxy_for(server: str, given: str | None) -> str | None:
    """As client-go: what the kubeconfig says, else HTTPS_PROXY, HTTP_PROXY and NO_PROXY; None for the direct way."""
    proxy = given or _from_environment(server)
    if proxy is None:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if fault := _fault(proxy):
        where = "proxy-url" if given else "HTTPS_PROXY"
        raise StartError(f"{where}: a proxy is http://HOST:PORT or https://HOST:PORT here, {fault}")
    return proxy


def _fault(proxy: str) -> str:
    """Why it is no proxy for us, but not the whole of it: there may be a password in it."""
    try:
        url = urlsplit(proxy)
        is_usable = url.scheme in {"http", "https"} and url.hostname and url.port != 0
    except ValueError:  # its text has more of it than may be told
        return "and what is there is no URL; in a password, signs like / and # are written as %2F and %23"
    return "" if is_usable else f"not {url.scheme}://{url.hostname}"


def _from_environment(server: str) -> str | None:
    url = urlsplit(server)
    host = url.hostname or ""
    if _is_this_machine(host) or _is_excepted(host, url.port):
        return None
    return getproxies().get(url.scheme)


def _is_this_machine(host: str) -> bool:
    """Go never asks a proxy for these, whatever the environment says."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_excepted(host: str, port: int | None) -> bool:
    """Whether NO_PROXY has the host, a domain it is in, or a network."""
    with_port = f"{host}:{port}" if port else host
    return bool(proxy_bypass(with_port)) or any(
        _is_within(host, entry.strip()) for entry in getproxies().get("no", "").split(",") if "/" in entry
    )


def _is_within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
