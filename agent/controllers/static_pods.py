"""Create a mirror pod for every static pod."""

import logging

from agent.controllers.pod_store import PodStore
from agent.controllers.state import NodeState
from agent.core.model import PodObject
from agent.core.pods.static import Manifest, manifest_hash, mirror_pod
from agent.machinery.runner import Scheduling
from agent.ports import AlreadyExists, ApiError, ManifestSource, PodApi

log = logging.getLogger(__name__)

_NO_NODE_SECONDS = 1.0


class StaticPodController:
    """Creates missing mirror pods; the PodController deletes those whose static pod is gone or has changed."""

    def __init__(
        self,
        state: NodeState,
        api: PodApi,
        source: ManifestSource,
        store: PodStore,
        *,
        scheduling: Scheduling,
    ) -> None:
        self.isolation = scheduling.isolation()
        self._manifests_isolation = scheduling.dependencies.unexpected.isolation("staticpods")
        self._state = state
        self._api = api
        self._source = source
        self._store = store
        self._queue = scheduling.queue
        self._clock = scheduling.clock
        self._hashes: frozenset[str] | None = None

    def start(self) -> None:
        """Read the manifests as soon as a worker is free."""
        self._queue.add(self)

    def on_mirror_removed(self) -> None:
        """Create a mirror pod again that somebody has deleted."""
        self._queue.add(self)

    def wants(self, mirror_hash: str) -> bool | None:
        """Return whether a static pod has this hash now; None before the manifests were read."""
        return None if self._hashes is None else mirror_hash in self._hashes

    async def sync(self) -> float:
        """Read the manifests and create what is missing. Returns the seconds until the next call."""
        node = self._state.node()
        if node is None:
            return _NO_NODE_SECONDS
        isolation = self._manifests_isolation
        manifests: dict[str, Manifest] = {}
        for manifest in await self._source.read():
            with isolation.attempt(f"hash of {manifest.path}", path=manifest.path):
                manifests[manifest_hash(manifest, node["metadata"]["name"])] = manifest
        self._hashes = frozenset(manifests)
        for missing in manifests.keys() - self._store.mirror_hashes():
            path = manifests[missing].path
            if not isolation.pause_seconds(path):
                with isolation.attempt(path, path=path):
                    await self._create(mirror_pod(manifests[missing], node, self._clock.now()))
        return self._state.config.pods.manifest_check_seconds

    async def _create(self, mirror: PodObject) -> None:
        try:
            await self._api.create(mirror)
        except AlreadyExists:
            pass  # the mirror of an older version, which the PodController deletes first
        except ApiError as error:
            log.error("Failed creating a mirror pod", {"err": error, "pod": mirror["metadata"]["name"]})
