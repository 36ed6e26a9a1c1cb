"""What was asked of the API server, from its audit log."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any


def entries(audit_log: Path, *words: str) -> Iterator[dict[str, Any]]:
    """Its entries, as they are; only those that contain all of the words."""
    with audit_log.open() as lines:
        for line in lines:  # the log is long, and decoding all of it slow
            if line.endswith("\n") and all(word in line for word in words):  # the last may not be whole yet
                yield json.loads(line)


def entries_of(user: str, audit_log: Path) -> list[dict[str, Any]]:
    """The entries about one user's requests."""
    return [entry for entry in entries(audit_log, f'"{user}"') if entry["user"].get("username") == user]


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the API server has seen, without its stages."""

    received: datetime
    verb: str
    target: str
    code: int


def requests_of(node_name: str, audit_log: Path, *, user: str | None = None) -> list[Request]:
    """All requests of a node, in the order in which they came."""
    found = {entry["auditID"]: _request(entry) for entry in entries_of(user or f"system:node:{node_name}", audit_log)}
    return sorted(found.values(), key=lambda request: request.received)


def _request(entry: dict[str, Any]) -> Request:
    reference = entry.get("objectRef", {})
    target = "/".join(part for part in (reference.get("resource"), reference.get("subresource")) if part)
    return Request(
        received=datetime.fromisoformat(entry["requestReceivedTimestamp"]),
        verb=entry["verb"],
        target=target or entry["requestURI"],
        code=entry.get("responseStatus", {}).get("code", 0),
    )


def renewals(requests: Sequence[Request]) -> list[datetime]:
    """When a Lease was renewed with success."""
    return [r.received for r in requests if r.target == "leases" and r.verb in {"update", "patch"} and r.code == 200]


def lease_intervals(requests: Sequence[Request]) -> list[float]:
    """The seconds between successful renewals of the Lease."""
    return [(after - before).total_seconds() for before, after in pairwise(renewals(requests))]


def by_kind(requests: Sequence[Request]) -> Counter[str]:
    """How many requests of each kind."""
    return Counter(f"{request.verb} {request.target}" for request in requests)
