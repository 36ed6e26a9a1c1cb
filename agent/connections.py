"""The connections to the API server: one for each of those who must not wait for another."""

from collections.abc import Callable
from typing import NamedTuple

from agent.adapters.api_connection import ApiConnection, RequestMetrics
from agent.adapters.credentials import Credentials
from agent.adapters.host import architecture
from agent.adapters.kube import (
    KubeCSINodes,
    KubeEvents,
    KubeLeases,
    KubeNodes,
    KubePods,
    KubeSelection,
    PodSelection,
)
from agent.adapters.manifests import ManifestFiles
from agent.core.config import Heartbeat, NodeConfig
from agent.node import NodeClients, PodClients
from agent.ports import Reachability, WatchApi

_REVIEW_SECONDS = 5.0  # a caller of our server waits for the review


class ApiConnections(NamedTuple):
    """Connections for lease, status, watch, pods, reviews and the rest, so that none waits for another."""

    lease: ApiConnection
    status: ApiConnection
    watch: ApiConnection
    pods: ApiConnection
    reviews: ApiConnection
    rest: ApiConnection


def open_connections(
    credentials: Credentials,
    heartbeat: Heartbeat,
    on_unauthorized: Callable[[], None],
    reachability: Reachability | None = None,
    *,
    metrics: RequestMetrics | None = None,
) -> ApiConnections:
    """Return connections that open when they are first used; the caller closes each."""
    metrics = metrics or RequestMetrics()

    def connection(timeout_seconds: float | None = None) -> ApiConnection:
        return ApiConnection(
            credentials,
            architecture=architecture(),
            timeout_seconds=timeout_seconds,
            on_unauthorized=on_unauthorized,
            metrics=metrics,
            reachability=reachability,
        )

    beat_seconds = heartbeat.request_timeout_seconds
    return ApiConnections(
        lease=connection(beat_seconds),
        status=connection(beat_seconds),
        watch=connection(),
        pods=connection(),
        reviews=connection(_REVIEW_SECONDS),
        rest=connection(),
    )


def clients_of(connections: ApiConnections, config: NodeConfig) -> NodeClients:
    """The connections as a node uses them."""
    return NodeClients(
        nodes=KubeNodes(connections.rest),
        status_nodes=KubeNodes(connections.status),
        lease_nodes=KubeNodes(connections.lease),
        leases=KubeLeases(connections.lease),
        csinodes=KubeCSINodes(connections.rest),
        events=KubeEvents(connections.rest),
        pods=None if config.pods.mode == "ignore" else _pod_clients(connections, config),
    )


def _pod_clients(connections: ApiConnections, config: NodeConfig) -> PodClients:
    return PodClients(
        pods=KubePods(connections.pods),
        events=KubeEvents(connections.pods),
        manifests=ManifestFiles(config.pods.manifest_path) if config.pods.manifest_path else None,
    )


def watches_of(connections: ApiConnections, config: NodeConfig) -> tuple[WatchApi, WatchApi | None]:
    """The node's own Node and, unless they are ignored, its pods, to be followed."""
    pods = None if config.pods.mode == "ignore" else PodSelection(connections.watch, config.node_name)
    return KubeSelection.node(connections.watch, config.node_name), pods
