"""Create a mirror pod for every static pod."""

import asyncio
import logging

from agent.controllers.state import NodeState
from agent.core.model import Object
from agent.core.pods.static import Manifest, manifest_hash, mirror_pod
from agent.loops.podstore import PodStore
from agent.machinery.isolation import Isolation
from agent.ports import AlreadyExists, ApiError, Clock, ManifestSource, PodApi

log = logging.getLogger(__name__)

_NO_NODE_SECONDS = 1.0


class StaticPodLoop:
    """Creates missing mirror pods; PodLoop deletes those whose static pod is gone or has changed."""

    def __init__(
        self,
        *,
        source: ManifestSource,
        pods: PodApi,
        store: PodStore,
        state: NodeState,
        clock: Clock,
        check_seconds: float,
        isolation: Isolation,
    ) -> None:
        self._source = source
        self._pods = pods
        self._store = store
        self._state = state
        self._clock = clock
        self._check_seconds = check_seconds
        self._isolation = isolation
        self._hashes: frozenset[str] | None = None
        self.missing = asyncio.Event()  # PodLoop sets it when a mirror pod is gone

    def wants(self, mirror_hash: str) -> bool | None:
        """Return whether a static pod has this hash now; None before the manifests were read."""
        return None if self._hashes is None else mirror_hash in self._hashes

    async def run(self) -> None:
        """Sync forever."""
        while True:
            self.missing.clear()
            has_node = await self.sync()
            await self._clock.wait(self.missing, self._check_seconds if has_node else _NO_NODE_SECONDS)

    async def sync(self) -> bool:
        """Read the manifests and create what is missing; return whether there is a Node to own mirror pods."""
        node = self._state.node
        if node is None:
            return False
        manifests: dict[str, Manifest] = {}
        for manifest in await self._source.read():
            with self._isolation.attempt(f"hash of {manifest.path}", path=manifest.path):
                manifests[manifest_hash(manifest, node["metadata"]["name"])] = manifest
        self._hashes = frozenset(manifests)
        for missing in manifests.keys() - self._store.mirror_hashes():
            path = manifests[missing].path
            if not self._isolation.pause_seconds(path):
                with self._isolation.attempt(path, path=path):
                    await self._create(mirror_pod(manifests[missing], node, self._clock.now()))
        return True

    async def _create(self, mirror: Object) -> None:
        try:
            await self._pods.create(mirror)
        except AlreadyExists:
            pass  # the mirror of an older version, which PodLoop deletes first
        except ApiError as error:
            log.error("Failed creating a mirror pod", {"err": error, "pod": mirror["metadata"]["name"]})
