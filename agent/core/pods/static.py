"""Static pods, which manifest files define, and the mirror pods that show them in the API."""

import hashlib
import json
from datetime import datetime
from typing import NamedTuple

from agent.core.model import NodeObject, OwnerReference, PodObject

_PREFIX = "kubernetes.io/config"
_MIRROR, _HASH = f"{_PREFIX}.mirror", f"{_PREFIX}.hash"
_TOLERATE_NO_EXECUTE = {"operator": "Exists", "effect": "NoExecute"}


class Manifest(NamedTuple):
    """A static pod and the file that defines it."""

    path: str
    pod: PodObject


def manifest_fault(pod: object) -> str | None:
    """Return why the content of a manifest file is no pod; None if it is one."""
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


def mirror_pod(manifest: Manifest, node: NodeObject, now: datetime) -> PodObject:
    """Return the mirror pod: named after the node, owned by the Node, and not evicted by taints."""
    metadata, spec = manifest.pod["metadata"], manifest.pod["spec"]
    name = node["metadata"]["name"]
    digest = manifest_hash(manifest, name)
    owner: OwnerReference = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name,
        "uid": node["metadata"]["uid"],
        "controller": True,
    }
    marks = {_HASH: digest, _MIRROR: digest, f"{_PREFIX}.source": "file", f"{_PREFIX}.seen": now.isoformat()}
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
        "spec": {**spec, "nodeName": name, "tolerations": [*(spec.get("tolerations") or ()), _TOLERATE_NO_EXECUTE]},
    }


def manifest_hash(manifest: Manifest, node_name: str) -> str:
    """Return a hash that changes with the manifest."""
    content = json.dumps([manifest.pod, f"host:{node_name}", f"file:{manifest.path}"], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def mirror_hash(mirror: PodObject) -> str:
    """Return the hash of the static pod that a mirror pod shows."""
    value: str = mirror["metadata"]["annotations"][_MIRROR]
    return value
