"""`fleet status` and `fleet delete`: what the cluster knows of a fleet, whichever process runs it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.adapters.credentials import load_credentials
from agent.adapters.kube import LeaseSelection, NodeNames, NodeSelection
from agent.connections import ApiConnections, clients_of, open_connections
from agent.core.config import Config
from agent.core.fleet import FLEET_LABEL
from agent.core.fleet_view import percentile
from agent.core.model import LeaseObject, NodeObject
from agent.core.nodestatus import find_condition
from agent.core.times import exact_time
from agent.fleet.deletion import delete_nodes
from agent.ports import ApiError, StartError

_STATES = {"True": "Ready", "False": "NotReady"}
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Row:
    fleet: str
    states: Mapping[str, int]
    ages: Sequence[float]


async def read_status(config: Config, name: str) -> str:
    """Return the nodes of each fleet by state, and how old their leases are, as a table. Raises StartError."""
    async with _connected(config) as connections:
        selector = f"{FLEET_LABEL}={name}" if name else FLEET_LABEL
        nodes: list[NodeObject] = (await NodeSelection(connections.rest, selector).list()).objects
        renewed = await _renewals(connections)
    if not nodes:
        return f"There is no fleet {name}." if name else "There is no fleet."
    fleets = sorted({node["metadata"]["labels"][FLEET_LABEL] for node in nodes})
    rows = [_row(fleet, [node for node in nodes if _fleet(node) == fleet], renewed) for fleet in fleets]
    return "\n".join(map(_line, rows))


async def delete_fleet(config: Config, name: str, advance: Callable[[int, int], None]) -> str:
    """Delete the Nodes of a fleet with their leases and CSINodes; return how many there were. Raises StartError.

    A fleet that still runs would register them again, so it is an error if a lease is renewed meanwhile.
    """
    async with _connected(config) as connections:
        names = [node["metadata"]["name"] for node in await _named(connections, name)]
        if not names:
            raise StartError(f"there is no fleet {name}")
        await _wait_for_end(connections, name, set(names), config.node.heartbeat.lease_renew_seconds)
        deleted = 0

        def on_deleted() -> None:
            nonlocal deleted
            deleted += 1
            advance(deleted, len(names))

        await delete_nodes(names, clients_of(connections, config.node), on_deleted)
    return f"Deleted {len(names)} nodes of fleet {name}."


@asynccontextmanager
async def _connected(config: Config) -> AsyncIterator[ApiConnections]:
    """Connect to the API server; an error of its answers becomes a StartError."""
    credentials = await load_credentials(config.process.kubeconfig)
    connections = open_connections(credentials, config.node.heartbeat, lambda: None)
    try:
        yield connections
    except ApiError as error:
        raise StartError(str(error)) from error
    finally:
        for connection in connections:
            await connection.close()


async def _named(connections: ApiConnections, name: str) -> Sequence[NodeObject]:
    return (await NodeNames(connections.rest, f"{FLEET_LABEL}={name}").list()).objects


async def _renewals(connections: ApiConnections) -> dict[str, datetime]:
    """Return when each lease was renewed last."""
    leases: list[LeaseObject] = (await LeaseSelection(connections.rest).list()).objects
    times = ((lease["metadata"]["name"], lease.get("spec", {}).get("renewTime")) for lease in leases)
    return {name: exact_time(text) for name, text in times if text}


async def _wait_for_end(connections: ApiConnections, name: str, names: set[str], period_seconds: float) -> None:
    """Return when no lease has been renewed for longer than a period. Raises StartError if one is renewed."""
    first: dict[str, datetime] | None = None
    while True:
        renewed = {node: at for node, at in (await _renewals(connections)).items() if node in names}
        if first is not None and any(at > first.get(node, at) for node, at in renewed.items()):
            raise StartError(f"fleet {name} still runs, and would register its nodes again; end it first")
        first = first if first is not None else renewed
        newest = max(renewed.values(), default=None)
        if newest is None or (datetime.now(UTC) - newest).total_seconds() > 1.2 * period_seconds:
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _fleet(node: NodeObject) -> str:
    return node["metadata"]["labels"][FLEET_LABEL]


def _row(fleet: str, nodes: Sequence[NodeObject], renewed: Mapping[str, datetime]) -> _Row:
    states: dict[str, int] = {}
    for node in nodes:
        ready = find_condition(node.get("status", {}), "Ready")
        state = _STATES.get(ready["status"], "Unknown") if ready else "NotReady"
        states[state] = states.get(state, 0) + 1
    now = datetime.now(UTC)
    names = (node["metadata"]["name"] for node in nodes)
    return _Row(fleet, states, [(now - renewed[name]).total_seconds() for name in names if name in renewed])


def _line(row: _Row) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(row.states.items()))
    p50, p99, oldest = (percentile(row.ages, percent) for percent in (50, 99, 100))
    ages = f"p50 {p50:.0f}s, p99 {p99:.0f}s, oldest {oldest:.0f}s" if row.ages else "none"
    return f"fleet {row.fleet}: {sum(row.states.values())} nodes: {states}; lease age: {ages}"
