"""Which endpoint a request is for, as a kubelet decides it: Go's ServeMux first, go-restful's services behind it.

The order matters, for it can be seen from outside: a path that the mux does not know is a 404 before anybody is asked
who they are; what a service does not know, or not for this method, comes after that question.
"""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

E = TypeVar("E")

_REST = ":*}"
_NODES = "/metrics/nodes/"


class NodePath(NamedTuple):
    """A path as a node has it on a port of its own; without a name, it is about all nodes of the port."""

    node_name: str
    path: str


def path_of_node(name: str) -> str:
    """Return below which path a node is found on a port that several nodes share."""
    return f"{_NODES}{name}"


def node_path(path: str) -> NodePath:
    """Return which node a path on a shared port is about, and what of it; without a name if it is not about one."""
    name, slash, rest = path.removeprefix(_NODES).partition("/")
    return NodePath(name, f"/{rest}") if path.startswith(_NODES) and name and slash else NodePath("", path)


class NoRoute(NamedTuple):
    """The mux has no such path."""


class Redirect(NamedTuple):
    """The mux has the path in another spelling."""

    path: str


class ServiceError(NamedTuple):
    """A service has no such route, or not for this method or media type."""

    status: int
    text: str
    allow: str = ""


@dataclass(frozen=True, slots=True)
class RouteMatch(Generic[E]):
    """An endpoint, and the parameters that the path has for it."""

    endpoint: E
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route(Generic[E]):
    """One path below a service's root; a part in braces takes what is there, one that ends in `:*` all the rest."""

    path: str
    endpoint: E
    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True, slots=True)
class Service(Generic[E]):
    """Routes below one root. A root that ends in a slash is asked for with one, or the mux redirects."""

    root: str
    routes: tuple[Route[E], ...]
    produces: str = ""  # the only media type, where there is one


class RouteTable(Generic[E]):
    """All paths of a server: exact ones and whole trees take any method, services choose."""

    def __init__(
        self,
        *,
        exact: Mapping[str, E],
        trees: Mapping[str, E] | None = None,
        services: Iterable[Service[E]] = (),
    ) -> None:
        self._exact = exact
        self._trees = dict(trees or {})
        self._services = {service.root.strip("/"): service for service in services}
        roots = [service.root for service in self._services.values()]
        self._names = {*exact, *(root for root in roots if not root.endswith("/"))}
        self._prefixes = {*self._trees, *(root if root.endswith("/") else f"{root}/" for root in roots)}

    def find(self, raw_path: str, method: str, accept: str = "") -> NoRoute | Redirect | ServiceError | RouteMatch[E]:
        """Return what a request with this path, still escaped, and this method is for."""
        clean = _clean(raw_path)
        if clean not in self._names and f"{clean}/" in self._prefixes:
            return Redirect(f"{clean}/")
        if clean != raw_path:
            return Redirect(clean)
        path = unescaped(raw_path)
        if path in self._exact:
            return RouteMatch(self._exact[path], {})
        tree = max((prefix for prefix in self._prefixes if path.startswith(prefix)), key=len, default="")
        if tree in self._trees:
            return RouteMatch(self._trees[tree], {})
        if not tree and path not in self._names:
            return NoRoute()
        return self._route(self._services[(tree or path).strip("/")], path, method, accept)

    def _route(self, service: Service[E], path: str, method: str, accept: str) -> ServiceError | RouteMatch[E]:
        words = path[len(service.root.rstrip("/")) :].strip("/")
        parts = words.split("/") if words else []
        parameters = ((route, _parameters(route, parts)) for route in service.routes)
        candidates = [(route, values) for route, values in parameters if values is not None]
        if not candidates:
            return ServiceError(404, "404: Page Not Found")
        chosen = next((candidate for candidate in candidates if method in candidate[0].methods), None)
        if chosen is None:
            allowed = dict.fromkeys(name for route, _ in candidates for name in route.methods)
            return ServiceError(405, "405: Method Not Allowed", ", ".join(allowed))
        if service.produces and not _accepts(accept, service.produces):
            return ServiceError(406, f"406: Not Acceptable\n\nAvailable representations: {service.produces}")
        route, values = chosen
        return RouteMatch(route.endpoint, values)


def unescaped(raw_path: str) -> str:
    """Return a path without escapes; bytes that are no UTF-8 become surrogates, as in the names of files."""
    return unquote(raw_path, errors="surrogateescape")


def _clean(raw_path: str) -> str:
    """As Go's mux: no empty, `.` or `..` parts; a slash at the end stays."""
    path = posixpath.normpath(f"/{raw_path.lstrip('/')}")
    return f"{path}/" if raw_path.endswith("/") and path != "/" else path


def _parameters(route: Route[E], parts: Sequence[str]) -> Mapping[str, str] | None:
    """Return the parameters that the path has for a route; None where the route does not match."""
    wanted = route.path.strip("/").split("/") if route.path else []
    takes_rest = bool(wanted) and wanted[-1].endswith(_REST)
    if len(parts) < len(wanted) or (len(parts) > len(wanted) and not takes_rest):
        return None
    values = {}
    for index, name in enumerate(wanted):
        if name.endswith(_REST):
            values[name[1 : -len(_REST)]] = "/".join(parts[index:])
        elif name.startswith("{"):
            values[name[1:-1]] = parts[index]
        elif name != parts[index]:
            return None
    return values


def _accepts(accept: str, produced: str) -> bool:
    kinds = {kind.partition(";")[0].strip(" ") for kind in (accept or "*/*").split(",")}
    return bool(kinds & {"*/*", produced})
