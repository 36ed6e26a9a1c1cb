"""Where a request for a pod or a node goes: the path and query of the kubelet's API, and the address of its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from agent.core.pods.accessors import placed_containers
from agent.minicluster.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    from agent.core.model import Object, PodObject

    class Query(Protocol):
        """The query of a request, whose names may come several times."""

        def get(self, name: str, default: str) -> str:
            """Return the first value of a name."""

        def getall(self, name: str, default: list[str]) -> list[str]:
            """Return all values of a name."""


KUBELET_PORT = 10250
_ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname")  # the order that kubeadm sets
_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_LOG_FLAGS = ("follow", "previous", "timestamps")
_LOG_VALUES = ("sinceSeconds", "sinceTime", "tailLines", "limitBytes")


class KubeletLocation(NamedTuple):
    """What a request asks of which node's kubelet."""

    node_name: str
    path: str
    query: str = ""


def log_location(pod: PodObject, query: Query) -> KubeletLocation | None:
    """Return where the log of a container is; None for a pod without a node. Raises StatusError for a bad request."""
    container = _container(pod, query.get("container", ""))
    if not (node_name := pod["spec"].get("nodeName")):
        return None
    options = {name: "true" for name in _LOG_FLAGS if query.get(name, "") in _TRUE}
    options |= {name: value for name in _LOG_VALUES if (value := query.get(name, ""))}
    return KubeletLocation(node_name, f"/containerLogs/{_path_of(pod)}/{container}", urlencode(options))


def stream_location(pod: PodObject, subresource: str, query: Query) -> KubeletLocation:
    """Return where exec, attach and portforward of a pod are. Raises StatusError for a bad request."""
    if subresource == "portforward":
        ports = ",".join(query.getall("ports", []))
        return KubeletLocation(
            _node_of(pod), f"/portForward/{_path_of(pod)}", urlencode({"port": ports} if ports else {})
        )
    container = _container(pod, query.get("container", ""))
    options = [(sent, "1") for name, sent in _STREAMS.items() if query.get(name, "") in _TRUE]
    if subresource == "exec":
        options += [("command", word) for word in query.getall("command", [])]
    return KubeletLocation(_node_of(pod), f"/{subresource}/{_path_of(pod)}/{container}", urlencode(options))


def kubelet_address(node: Object) -> tuple[str, int]:
    """Return host and port of a node's kubelet, as its status has them. Raises StatusError if it has no address."""
    status = node["status"]
    addresses = {entry.get("type"): entry.get("address") for entry in reversed(status.get("addresses") or [])}
    host = next((addresses[kind] for kind in _ADDRESS_TYPES if addresses.get(kind)), None)
    if host is None:
        known = " ".join(str(address) for address in addresses.values())
        raise StatusError(500, "", f"no preferred addresses found; known addresses: [{known}]")
    return host, kubelet_port(node)


def kubelet_port(node: Object) -> int:
    """Return the port of a node's kubelet."""
    endpoint: Mapping[str, int] = (node["status"].get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return endpoint.get("Port") or KUBELET_PORT


def _node_of(pod: PodObject) -> str:
    node_name = pod["spec"].get("nodeName", "")
    if not node_name:
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    return node_name


def _path_of(pod: PodObject) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _container(pod: PodObject, wanted: str) -> str:
    """Return the container that is asked for, which need not be named where the pod has one alone."""
    pod_name, names = pod["metadata"]["name"], list(_container_names(pod))
    if wanted and wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {pod_name}")
    if not wanted and len(pod["spec"]["containers"]) > 1:
        listed = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{listed}]")
    return wanted or pod["spec"]["containers"][0]["name"]


def _container_names(pod: PodObject) -> Iterator[str]:
    return (container["name"] for _, container in placed_containers(pod))
