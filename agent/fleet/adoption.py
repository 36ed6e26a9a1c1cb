"""Keeps Nodes alive that others create and delete: hosts a node for each while it exists, and ends it with its pods."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from agent.adapters.api_connection import ApiConnection
from agent.adapters.kube import KubePods, PodSelection
from agent.core.adoption import AdoptionSelector, adopted_plan
from agent.core.config import NodeConfig
from agent.core.model import NodeObject
from agent.core.pods.info import PodInfo
from agent.fleet.hosting import HostedFleet
from agent.machinery.reflector import Store
from agent.ports import ApiError, Clock, NotFound, StartError

log = logging.getLogger(__name__)

_AT_ONCE = 8
_RETRY_SECONDS, _TRIES = 1.0, 10


class Adopter:
    """A store of Nodes: it hosts those that are selected, and passes all on to the nodes that are hosted."""

    def __init__(
        self, selector: AdoptionSelector, base: NodeConfig, hosted: HostedFleet, nodes: Store, pods: "AdoptedPods"
    ) -> None:
        self._selector = selector
        self._base = base
        self._hosted = hosted
        self._nodes = nodes
        self._pods = pods
        self._uids: dict[str, str] = {}  # of the adopted Nodes, by name

    def reset(self, objects: Sequence[NodeObject], version: str) -> None:
        """Take in a list of all Nodes."""
        uids = {node["metadata"]["name"]: node["metadata"]["uid"] for node in objects}
        for name in [name for name, uid in self._uids.items() if uids.get(name) != uid]:
            self._end(name)
        for node in objects:
            self._adopt_or_release(node)
        self._nodes.reset(objects, version)

    def put(self, node: NodeObject, /) -> None:
        """Take in a Node as it is now."""
        self._adopt_or_release(node)
        self._nodes.put(node)

    def remove(self, node: NodeObject, /) -> None:
        """Take in that a Node was deleted."""
        self._nodes.remove(node)
        name = node["metadata"]["name"]
        if self._uids.get(name) == node["metadata"]["uid"]:
            self._end(name)

    def _adopt_or_release(self, node: NodeObject) -> None:
        name, is_selected = node["metadata"]["name"], self._selector.matches(node)
        if name in self._uids and not is_selected:
            log.info("Node is not selected any more, it is left alone", {"node": name, "selector": self._selector})
            del self._uids[name]
            self._hosted.remove(name)
        elif is_selected and not self._hosted.node(name):
            self._adopt(node)

    def _adopt(self, node: NodeObject) -> None:
        metadata = node["metadata"]
        try:
            self._hosted.add(adopted_plan(node, self._base))
        except (ValueError, StartError) as error:
            log.error("Unable to adopt a Node", {"err": error, "node": metadata["name"]})
            return
        log.info("Adopted a Node", {"node": metadata["name"], "uid": metadata["uid"]})
        self._uids[metadata["name"]] = metadata["uid"]
        self._pods.take(metadata["name"])

    def _end(self, name: str) -> None:
        """End a node; its Lease and CSINode belong to the Node, and the cluster collects them with it."""
        del self._uids[name]
        if node := self._hosted.node(name):
            self._pods.delete(node.pod_infos())
        self._hosted.remove(name)


class AdoptedPods:
    """Lists the pods that were bound to a Node before it was adopted, and deletes those of Nodes that have ended."""

    def __init__(self, hosted: HostedFleet, *, watch: ApiConnection, pods: ApiConnection, clock: Clock) -> None:
        self._hosted = hosted
        self._watch = watch
        self._api = KubePods(pods)
        self._clock = clock
        self._work: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]]] = asyncio.Queue()

    def take(self, name: str) -> None:
        """Give an adopted node the pods that it has already."""
        if (node := self._hosted.node(name)) and node.pod_controller:
            self._work.put_nowait(partial(self._take, name))

    def delete(self, pods: Sequence[PodInfo]) -> None:
        """Delete pods whose node is no more."""
        for pod in pods:
            self._work.put_nowait(partial(self._delete, pod))

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._run_worker())

    async def _run_worker(self) -> None:
        while True:
            work = await self._work.get()
            for _ in range(_TRIES):
                try:
                    await work()
                    break
                except ApiError as error:
                    log.warning("Unable to list or delete pods of an adopted Node, will retry", {"err": error})
                    await self._clock.sleep(_RETRY_SECONDS)

    async def _take(self, name: str) -> None:
        pods, _ = await PodSelection(self._watch, name).list()
        if (node := self._hosted.node(name)) and node.pod_controller:
            for pod in pods:
                node.pod_controller.put(pod)

    async def _delete(self, pod: PodInfo) -> None:
        try:
            await self._api.delete(pod.namespace, pod.name, pod.uid)
        except NotFound:
            return
