"""The ways to the API server: one for each of those who must not wait for another."""

from collections.abc import Callable
from typing import NamedTuple

from agent.adapters.credentials import Credentials
from agent.adapters.host import architecture
from agent.adapters.kube import KubeCSINodes, KubeEvents, KubeLeases, KubeNodes, KubeSelection
from agent.adapters.kube_pods import KubePods, pods_of
from agent.adapters.lane import Lane
from agent.adapters.manifests import ManifestFiles
from agent.adapters.request_tally import RequestTally
from agent.core.config import Config
from agent.node import NodeClients, PodClients
from agent.ports import WatchApi

_REVIEW_SECONDS = 5.0  # somebody waits for us with a request of his own


class Ways(NamedTuple):
    """Connections for lease, status, watch, pods, reviews and the rest, so that none waits for another."""

    lease: Lane
    status: Lane
    watch: Lane
    pods: Lane
    reviews: Lane
    rest: Lane


def open_ways(credentials: Credentials, config: Config, on_unauthorized: Callable[[], None]) -> Ways:
    """Connections are made when they are first needed; close each way at the end."""
    tally = RequestTally()

    def lane(timeout_seconds: float | None = None) -> Lane:
        return Lane(
            credentials,
            architecture=architecture(),
            timeout_seconds=timeout_seconds,
            on_unauthorized=on_unauthorized,
            tally=tally,
        )

    beat_seconds = config.heartbeat.request_timeout_seconds
    return Ways(
        lease=lane(beat_seconds),
        status=lane(beat_seconds),
        watch=lane(),
        pods=lane(),
        reviews=lane(_REVIEW_SECONDS),
        rest=lane(),
    )


def clients_of(ways: Ways, config: Config) -> NodeClients:
    """The ways as a node uses them."""
    return NodeClients(
        nodes=KubeNodes(ways.rest),
        status_nodes=KubeNodes(ways.status),
        lease_nodes=KubeNodes(ways.lease),
        leases=KubeLeases(ways.lease),
        csinodes=KubeCSINodes(ways.rest),
        events=KubeEvents(ways.rest),
        pods=None if config.pods.mode == "ignore" else _pod_clients(ways, config),
    )


def _pod_clients(ways: Ways, config: Config) -> PodClients:
    return PodClients(
        pods=KubePods(ways.pods),
        events=KubeEvents(ways.pods),
        manifests=ManifestFiles(config.pods.manifest_path) if config.pods.manifest_path else None,
    )


def watches_of(ways: Ways, config: Config) -> tuple[WatchApi, WatchApi | None]:
    """The node's own Node and, unless they are ignored, its pods, to be followed."""
    pods = None if config.pods.mode == "ignore" else pods_of(ways.watch, config.node_name)
    return KubeSelection.node(ways.watch, config.node_name), pods
