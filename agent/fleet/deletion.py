"""Delete what a node has in the cluster."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from agent.node import NodeClients
from agent.ports import NotFound

_AT_ONCE = 16


class _Deletes(Protocol):
    async def delete(self, name: str) -> None: ...


async def delete_nodes(
    names: Iterable[str], clients: NodeClients, on_deleted: Callable[[], None] = lambda: None
) -> None:
    """Delete the Nodes with these names, their leases and CSINodes, several at once. Raises the first ApiError."""
    waiting = iter(list(names))
    kinds: tuple[_Deletes, ...] = (clients.leases, clients.csinodes, clients.nodes)

    async def work() -> None:
        for name in waiting:
            for objects in kinds:
                try:
                    await objects.delete(name)
                except NotFound:
                    continue
            on_deleted()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
