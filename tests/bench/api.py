"""What the API server tells about nodes: live through a watch, afterwards through the audit log."""

import http.client
import json
import ssl
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.cluster.control_plane import ControlPlane


@contextmanager
def watch_node(cluster: ControlPlane, name: str, *, seconds: int) -> Iterator[Iterator[dict[str, Any]]]:
    """An open watch, whose iterator gives each new state of the Node at the moment it comes."""
    context = ssl.create_default_context(cafile=cluster.ca_file)
    context.load_cert_chain(cluster.admin_cert, cluster.admin_key)
    port = cluster.layout.apiserver
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=seconds + 5)
    try:
        query = f"watch=1&fieldSelector=metadata.name={name}&timeoutSeconds={seconds}"
        connection.request("GET", f"/api/v1/nodes?{query}")
        yield (json.loads(line)["object"] for line in connection.getresponse())
    finally:
        connection.close()


def is_ready(node: dict[str, Any]) -> bool:
    """Whether the Node's Ready condition is True."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the API server has seen, without its stages."""

    received: datetime
    verb: str
    target: str
    code: int


def requests_of(node_name: str, audit_log: Path, *, user: str | None = None) -> list[Request]:
    """All requests of a node, in the order in which they came."""
    found: dict[str, Request] = {}
    name = user or f"system:node:{node_name}"
    with audit_log.open() as lines:
        for line in lines:
            if f'"{name}"' in line:  # the log is long, and decoding all of it slow
                event = json.loads(line)
                found[event["auditID"]] = _request(event)
    return sorted(found.values(), key=lambda request: request.received)


def _request(event: dict[str, Any]) -> Request:
    reference = event.get("objectRef", {})
    target = "/".join(part for part in (reference.get("resource"), reference.get("subresource")) if part)
    return Request(
        received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        verb=event["verb"],
        target=target or event["requestURI"],
        code=event.get("responseStatus", {}).get("code", 0),
    )


def lease_intervals(requests: Sequence[Request]) -> list[float]:
    """The seconds between successful renewals of the Lease."""
    renewals = [
        r.received for r in requests if r.target == "leases" and r.verb in {"update", "patch"} and r.code == 200
    ]
    return [(after - before).total_seconds() for before, after in pairwise(renewals)]


def by_kind(requests: Sequence[Request]) -> Counter[str]:
    """How many requests of each kind."""
    return Counter(f"{request.verb} {request.target}" for request in requests)
