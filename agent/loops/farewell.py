"""Leave the cluster."""

import logging
from typing import Protocol

from agent.ports import ApiError, LeaseApi, NodeApi, NotFound

log = logging.getLogger(__name__)


class Deletable(Protocol):
    """Something that can be removed by its name."""

    async def delete(self, name: str) -> None:
        """Remove it."""


class Farewell:
    """Removes Node and Lease, as far as the credentials allow it."""

    def __init__(self, *, node_name: str, nodes: NodeApi, leases: LeaseApi) -> None:
        self._name = node_name
        self._nodes = nodes
        self._leases = leases

    async def say(self) -> None:
        """Remove what may be removed, and tell what may not."""
        # The Lease first: the cluster would collect it with the Node that owns it.
        await self._remove("lease", self._leases)
        await self._remove("node", self._nodes)

    async def _remove(self, what: str, objects: Deletable) -> None:
        try:
            await objects.delete(self._name)
        except NotFound:
            log.info("Nothing left to deregister", {what: self._name})
        except ApiError as error:
            log.error("Unable to deregister", {"err": error, what: self._name})
        else:
            log.info("Deregistered", {what: self._name})
