"""Static pods: those that a file asks for, and the mirror pods that show them in the cluster."""

import hashlib
import json
from datetime import datetime
from typing import NamedTuple

from agent.core.model import Object

_PREFIX = "kubernetes.io/config"
_MIRROR, _HASH = f"{_PREFIX}.mirror", f"{_PREFIX}.hash"
_FOR_EVER = {"operator": "Exists", "effect": "NoExecute"}


class Manifest(NamedTuple):
    """A pod as a file describes it."""

    path: str
    pod: Object


def manifest_fault(pod: object) -> str | None:
    """Why something that a file holds is no pod; None where it is one."""
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        return "it is not a Pod"
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return "it has no name"
    if not isinstance(spec, dict) or not spec.get("containers"):
        return "it has no containers"
    for part, name, kind in ((metadata, "labels", dict), (metadata, "annotations", dict), (spec, "tolerations", list)):
        if not isinstance(part.get(name) or kind(), kind):
            return f"its {name} make no sense"
    return None


def mirror_pod(manifest: Manifest, node: Object, now: datetime) -> Object:
    """The pod that shows a static one: under the node's name, owned by the Node, and never in anybody's way."""
    metadata, spec = manifest.pod["metadata"], manifest.pod["spec"]
    name = node["metadata"]["name"]
    told = manifest_hash(manifest, name)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
    marks = {_HASH: told, _MIRROR: told, f"{_PREFIX}.source": "file", f"{_PREFIX}.seen": now.isoformat()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-{name}",
            "namespace": metadata.get("namespace") or "default",
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), **marks},
            "ownerReferences": [owner],
        },
        "spec": {**spec, "nodeName": name, "tolerations": [*(spec.get("tolerations") or ()), _FOR_EVER]},
    }


def manifest_hash(manifest: Manifest, node_name: str) -> str:
    """What tells one version of a manifest from another."""
    words = json.dumps([manifest.pod, f"host:{node_name}", f"file:{manifest.path}"], sort_keys=True)
    return hashlib.sha256(words.encode()).hexdigest()[:32]


def mirror_hash(mirror: Object) -> str:
    """Return the hash of the static pod that a mirror pod shows."""
    value: str = mirror["metadata"]["annotations"][_MIRROR]
    return value
