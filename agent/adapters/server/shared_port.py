"""The paths of a port that several nodes share: each node has its own below /metrics/nodes/NAME."""

from collections.abc import Callable

from agent.adapters.server.api import Routes
from agent.adapters.server.endpoints import Endpoint
from agent.core.routing import (
    NodePath,
    NoRoute,
    Redirect,
    RouteMatch,
    ServiceError,
    node_path,
    path_of_node,
    unescaped,
)

_OF_POD = {"run", "exec", "attach", "portForward", "containerLogs", "checkpoint"}


class SharedRoutes:
    """Finds the endpoints of one node by its name in the path, and otherwise those of all."""

    def __init__(self, together: Routes, routes_of: Callable[[str], Routes | None]) -> None:
        self._together = together
        self._routes_of = routes_of

    def find(
        self, raw_path: str, method: str, accept: str = ""
    ) -> NoRoute | Redirect | ServiceError | RouteMatch[Endpoint]:
        """Return what a request with this path, still escaped, and this method is for."""
        raw_name, path = node_path(raw_path)
        if not raw_name:
            return self._together.find(raw_path, method, accept)
        routes = self._routes_of(unescaped(raw_name))
        if routes is None:
            return NoRoute()
        match = routes.find(path, method, accept)
        return Redirect(f"{path_of_node(raw_name)}{match.path}") if isinstance(match, Redirect) else match


def subject(path: str, node_of_pod: Callable[[str, str], str], default: str = "") -> NodePath:
    """Return the node about which a path is, by which its caller is authorized: it names the node, or a pod.

    Without a node, the caller needs the right for all nodes.
    """
    name, inner = node_path(path)
    if name:
        return NodePath(name, inner)
    match path.split("/"):
        case ["", root, namespace, pod, *_] if root in _OF_POD:
            return NodePath(node_of_pod(namespace, pod) or default, path)
    return NodePath(default, path)
