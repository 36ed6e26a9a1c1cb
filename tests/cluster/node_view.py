"""One node as the cluster shows it: Node, Lease, CSINode, events, and what it asked for."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tests.cluster.api import EVENTS, LEASES, NODES
from tests.cluster.audit import entries_of
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually


class NodeView:
    """What the API server has of a node; nothing is kept from one question to the next."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self.plane, self.name, self.api = plane, name, plane.api

    def node(self) -> dict[str, Any]:
        return self.plane.get("node", self.name)

    def lease(self) -> dict[str, Any]:
        return self.plane.get("lease", self.name, "kube-node-lease")

    def csinode(self) -> dict[str, Any]:
        return self.plane.get("csinode", self.name)

    def events(self, **fields: str) -> list[dict[str, Any]]:
        """The events about the Node, perhaps with more to select them by."""
        selector = ",".join(f"{key}={value}" for key, value in {"involvedObject.name": self.name, **fields}.items())
        return self.api.items(f"{EVENTS}?fieldSelector={selector}")

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition of the Node; nothing where it has none."""
        return condition(self.node(), kind)

    def is_ready(self) -> bool:
        return is_ready(self.node())

    def wait_until_ready(self) -> dict[str, Any]:
        """The Node, once it is Ready."""

        def ready_node() -> dict[str, Any] | None:
            node = self.node()
            return node if is_ready(node) else None

        return eventually(ready_node)

    @contextmanager
    def watch(self, seconds: int) -> Iterator[Iterator[dict[str, Any]]]:
        """Each new state of the Node, at the moment it comes."""
        one = {"fieldSelector": f"metadata.name={self.name}", "timeoutSeconds": str(seconds)}
        with self.api.watch(NODES, **one) as events:
            yield (event["object"] for event in events)

    def is_whole(self) -> bool:
        """Whether Node and Lease belong together and the node is Ready."""
        return owners(self.lease()) == [self.node()["metadata"]["uid"]] and self.is_ready()

    def owned_lease(self) -> dict[str, Any]:
        """The Lease once it is the Node's: it has a loop of its own, which may be earlier or later than the Node."""

        def owned() -> dict[str, Any] | None:
            lease = self.lease()
            return lease if owners(lease) == [self.node()["metadata"]["uid"]] else None

        return eventually(owned)

    def renewed_at(self) -> datetime:
        return datetime.fromisoformat(self.lease()["spec"]["renewTime"])

    def requests(self) -> list[dict[str, Any]]:
        """What the node asked of the API server, from its audit log."""
        return entries_of(f"system:node:{self.name}", self.plane.audit_log)

    def delete_node(self) -> None:
        self.api.delete(f"{NODES}/{self.name}")

    def delete_lease(self) -> None:
        self.api.delete(f"{LEASES}/{self.name}")

    def create_node(self) -> dict[str, Any]:
        return self.api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}})

    def patch_lease(self, patch: dict[str, Any]) -> None:
        self.api.patch(f"{LEASES}/{self.name}", patch)

    def __str__(self) -> str:
        """All of it for a person who has to find out what went wrong."""
        parts = []
        for what in (self.node, self.lease, self.events):
            try:
                found: Any = what()
            except Exception as problem:  # the cluster may be away, which is worth telling, too
                found = str(problem)
            parts.append(json.dumps({what.__name__: found}, indent=1))
        return "\n".join(parts)


def condition(node: dict[str, Any], kind: str) -> dict[str, Any]:
    """One condition of a Node; nothing where it has none."""
    conditions: list[dict[str, Any]] = node.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(node: dict[str, Any]) -> bool:
    """Whether the Node's Ready condition is True."""
    return condition(node, "Ready").get("status") == "True"


def owners(obj: dict[str, Any]) -> list[str]:
    """The UIDs of whom an object belongs to."""
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])]
