"""What a fleet finds out before it creates anything: whether it may, and whether its names are free."""

import asyncio
from collections.abc import Iterable

from agent.adapters.kube import KubeReviews, NodeNames
from agent.connections import ApiConnections
from agent.core.fleet import FLEET_LABEL
from agent.core.lease import LEASE_NAMESPACE
from agent.core.model import Object
from agent.ports import ApiError, StartError

_NODE_RIGHTS = (
    *((verb, "", "nodes", "", "") for verb in ("get", "list", "watch")),
    ("patch", "", "nodes", "status", ""),
    *((verb, "coordination.k8s.io", "leases", "", LEASE_NAMESPACE) for verb in ("get", "create", "update", "delete")),
    *((verb, "storage.k8s.io", "csinodes", "", "") for verb in ("get", "create", "delete")),
    ("create", "", "events", "", "default"),
)
_OWN_NODE_RIGHTS = tuple((verb, "", "nodes", "", "") for verb in ("create", "delete"))
_POD_RIGHTS = (
    *((verb, "", "pods", "", "") for verb in ("list", "watch", "delete")),
    ("patch", "", "pods", "status", ""),
)


async def check_rights(connections: ApiConnections, *, hosts_pods: bool, has_own_nodes: bool = True) -> None:
    """Raise StartError with every right that is missing; adopted Nodes are created and deleted by others."""
    reviews = KubeReviews(connections.reviews)
    rights = (
        *_NODE_RIGHTS,
        *(_OWN_NODE_RIGHTS if has_own_nodes else ()),
        *(_POD_RIGHTS if hosts_pods else ()),
    )
    try:
        answers = await asyncio.gather(*(reviews.own_access(_question(*right)) for right in rights))
    except ApiError as error:
        raise StartError(f"cannot ask the API server for our rights: {error}") from error
    missing = [_words(*right) for right, answer in zip(rights, answers, strict=True) if not answer.get("allowed")]
    if missing:
        raise StartError(f"the credentials may not {', '.join(missing)}")


async def check_names(connections: ApiConnections, fleet_name: str, names: Iterable[str]) -> None:
    """Raise StartError if a name belongs to a Node that is not of this fleet."""
    try:
        others = (await NodeNames(connections.rest, f"{FLEET_LABEL}!={fleet_name}").list()).objects
    except ApiError as error:
        raise StartError(f"cannot list the Nodes that there are: {error}") from error
    wanted = set(names)
    taken = sorted(wanted & {node["metadata"]["name"] for node in others})
    if taken:
        more = f" and {len(taken) - 1} more" if taken[1:] else ""
        raise StartError(
            f"Node {taken[0]}{more} exists and is not of fleet {fleet_name}; "
            "choose other names with --name-template, or delete it"
        )


def _question(verb: str, group: str, resource: str, subresource: str, namespace: str) -> Object:
    attributes = {"verb": verb, "group": group, "resource": resource}
    more = {"subresource": subresource, "namespace": namespace}
    return {"resourceAttributes": attributes | {key: value for key, value in more.items() if value}}


def _words(verb: str, group: str, resource: str, subresource: str, namespace: str) -> str:
    kind = ".".join(filter(None, (resource, group))) + (f"/{subresource}" if subresource else "")
    return f"{verb} {kind}" + (f" in {namespace}" if namespace else "")
