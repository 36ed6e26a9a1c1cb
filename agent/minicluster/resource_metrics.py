"""metrics.k8s.io, for `kubectl top`: what nodes and pods use, from two looks at /metrics/resource of their kubelets."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agent.core.quantity import Quantity
from agent.core.times import format_seconds, timestamp
from agent.minicluster.kubelet_location import KubeletLocation
from agent.minicluster.node_strategy import NODES
from agent.minicluster.status_errors import StatusError, object_not_found
from agent.minicluster.strategy import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from agent.core.model import Object
    from agent.minicluster.kubelet_client import KubeletClient
    from agent.minicluster.object_store import ObjectStore

_WINDOW_SECONDS = 1.0
_LONGEST_WINDOW_SECONDS = 60.0
_PATH_ANNOTATION = "metrics.k8s.io/resource-metrics-path"  # metrics-server v0.7: of nodes that share a port
_LINE = re.compile(r"(node|container)_(cpu_usage_seconds_total|memory_working_set_bytes)(?:\{(.*)\})? (\S+) (\d+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def _resource(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group="metrics.k8s.io",
        version="v1beta1",
        plural=plural,
        singular="",
        kind=kind,
        namespaced=namespaced,
        verbs=("get", "list"),
    )


NODE_METRICS = _resource("nodes", "NodeMetrics", namespaced=False)
POD_METRICS = _resource("pods", "PodMetrics", namespaced=True)
METRICS = (NODE_METRICS, POD_METRICS)


class Subject(NamedTuple):
    """Whose use is measured: the node where the names are empty, else a container."""

    namespace: str = ""
    pod: str = ""
    container: str = ""


@dataclass(slots=True)
class ScrapedSample:
    """What one kubelet said at one time."""

    at_seconds: float = 0.0
    cpu_seconds: dict[Subject, float] = field(default_factory=dict)
    memory_bytes: dict[Subject, int] = field(default_factory=dict)


class MeasuredUsage(NamedTuple):
    """What a subject uses."""

    cpu_nanocores: int
    memory_bytes: int


class Window(NamedTuple):
    """What all subjects of a node use, and over how long a time."""

    seconds: float
    usage: Mapping[Subject, MeasuredUsage]


class ResourceMetrics:
    """Measures nodes and pods when somebody asks, over a second, or since the last question if that is not long ago."""

    def __init__(self, store: ObjectStore, kubelets: KubeletClient, *, now: Callable[[], datetime]) -> None:
        self._store = store
        self._kubelets = kubelets
        self._now = now
        self._samples: dict[str, ScrapedSample] = {}  # the last one, by the UID of its node

    async def list(self, resource: Resource) -> list[Object]:
        """Return the metrics of all nodes or pods; those of a node that does not answer are left out."""
        nodes = self._store.list(NODES.key)
        windows = await asyncio.gather(*(self._measure(node) for node in nodes))
        as_objects = self._node_metrics if resource is NODE_METRICS else self._pod_metrics
        return [obj for node, window in zip(nodes, windows, strict=True) if window for obj in as_objects(node, window)]

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return the metrics of one node or pod. Raises StatusError if there are none."""
        for obj in await self.list(resource):
            if (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) == (namespace, name):
                return obj
        raise object_not_found(resource, name)

    async def _measure(self, node: Object) -> Window | None:
        """Return what a node and its containers use; None if its kubelet does not answer."""
        uid = node["metadata"]["uid"]
        try:
            sample = await self._sample(node)
            before = self._samples.get(uid)
            if before is None or sample.at_seconds - before.at_seconds > _LONGEST_WINDOW_SECONDS:
                before = sample
            if sample.at_seconds - before.at_seconds < _WINDOW_SECONDS:
                await asyncio.sleep(_WINDOW_SECONDS)
                sample = await self._sample(node)
        except StatusError:
            return None
        self._samples[uid] = sample
        return window_between(before, sample)

    async def _sample(self, node: Object) -> ScrapedSample:
        metadata = node["metadata"]
        path = (metadata.get("annotations") or {}).get(_PATH_ANNOTATION, "/metrics/resource")
        return read_sample(await self._kubelets.read(KubeletLocation(metadata["name"], path)))

    def _node_metrics(self, node: Object, window: Window) -> Iterator[Object]:
        if usage := window.usage.get(Subject()):
            metadata = {"name": node["metadata"]["name"], "labels": node["metadata"].get("labels") or {}}
            yield self._metrics(NODE_METRICS, metadata, window) | {"usage": _usage(usage)}

    def _pod_metrics(self, _: Object, window: Window) -> Iterator[Object]:
        containers: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
        for subject, usage in window.usage.items():
            if subject.container:
                entry = {"name": subject.container, "usage": _usage(usage)}
                containers[subject.namespace, subject.pod].append(entry)
        for (namespace, name), entries in containers.items():
            metadata = {"name": name, "namespace": namespace}
            yield self._metrics(POD_METRICS, metadata, window) | {"containers": entries}

    def _metrics(self, resource: Resource, metadata: Object, window: Window) -> Object:
        now = timestamp(self._now())
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        times = {"timestamp": now, "window": format_seconds(window.seconds)}
        return head | {"metadata": metadata | {"creationTimestamp": now}} | times


def read_sample(text: str) -> ScrapedSample:
    """Read /metrics/resource of a kubelet."""
    sample = ScrapedSample()
    for kind, metric, labels, value, millis in _LINE.findall(text):
        names = dict(_LABEL.findall(labels))
        subject = Subject(names.get("namespace", ""), names.get("pod", ""), names.get("container", ""))
        if (kind == "node") == bool(subject.container):
            continue
        sample.at_seconds = max(sample.at_seconds, int(millis) / 1000)
        if metric.startswith("cpu"):
            sample.cpu_seconds[subject] = float(value)
        else:
            sample.memory_bytes[subject] = int(float(value))
    return sample


def window_between(before: ScrapedSample, after: ScrapedSample) -> Window:
    """Return what each subject that is in both samples used between them."""
    seconds = max(after.at_seconds - before.at_seconds, 0.001)
    usage = {
        subject: MeasuredUsage(round(max(0.0, total - before.cpu_seconds[subject]) / seconds * 10**9), memory)
        for subject, total in after.cpu_seconds.items()
        if subject in before.cpu_seconds and (memory := after.memory_bytes.get(subject)) is not None
    }
    return Window(seconds, usage)


def _usage(usage: MeasuredUsage) -> Object:
    return {"cpu": str(Quantity(usage.cpu_nanocores)), "memory": str(Quantity.of_bytes(usage.memory_bytes))}
