"""What a container can read about its pod: environment variables and files of the downward API."""

import posixpath
import re
from collections.abc import Callable, Mapping
from math import ceil

from agent.core.model import Container, Object, PodObject
from agent.core.quantity import Quantity, parse_quantity

_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_MOST_VARIABLES = 1000
_MOST_CHARACTERS = 10_000  # of what one reference chain may grow to


def environment(pod: PodObject, container: Container) -> dict[str, str]:
    """Return the variables whose values the pod itself says; those from Secrets and ConfigMaps are unknown."""
    variables: dict[str, str] = {}
    for entry in (container.get("env") or ())[:_MOST_VARIABLES]:
        source = entry.get("valueFrom") or {}
        if not source:
            value: str | None = expanded(entry.get("value") or "", variables)
        elif reference := source.get("fieldRef"):
            value = field(pod, reference.get("fieldPath") or "")
        elif reference := source.get("resourceFieldRef"):
            value = _resource(container, reference)
        else:
            value = None
        variables.pop(entry["name"], None)
        if value is not None:
            variables[entry["name"]] = value
    return variables


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with $(NAME) replaced and $$ as $, as a kubelet does; an unknown name stays as it is."""

    def replaced(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)[:_MOST_CHARACTERS]


def field(pod: PodObject, path: str) -> str | None:
    """Return a field of the pod as the downward API shows it; None if it shows no such field."""
    if keyed := _KEYED.fullmatch(path):
        entries: Mapping[str, str] = (pod["metadata"].get("labels") if keyed[1] == "labels" else None) or {}
        if keyed[1] == "annotations":
            entries = pod["metadata"].get("annotations") or {}
        return entries.get(keyed[2], "")
    reader = _FIELDS.get(path)
    return reader(pod) if reader else None


def file(pod: PodObject, container: Container, path: str) -> str | None:
    """Return what a mounted file of the downward API contains; None for any other file."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        if mount.get("subPath") or mount.get("subPathExpr") or not mount["mountPath"].startswith("/"):
            continue
        relative = posixpath.relpath(posixpath.normpath(path), mount["mountPath"])
        for item in _items(volumes.get(mount["name"]) or {}):
            if item.get("path") == relative:
                return _content(pod, item)
    return None


def _items(volume: Object) -> list[Object]:
    sources = [volume, *((volume.get("projected") or {}).get("sources") or ())]
    return [item for source in sources for item in (source.get("downwardAPI") or {}).get("items") or ()]


def _content(pod: PodObject, item: Object) -> str | None:
    if reference := item.get("fieldRef"):
        return field(pod, reference.get("fieldPath") or "")
    reference = item.get("resourceFieldRef") or {}
    named = (
        container for container in pod["spec"]["containers"] if container["name"] == reference.get("containerName")
    )
    container = next(named, None)
    return _resource(container, reference) if container else None


def _resource(container: Container, reference: Object) -> str | None:
    """Return a request or limit in units of its divisor, rounded up; None where the node's size would stand for it."""
    kind, _, name = (reference.get("resource") or "").partition(".")
    resources = container.get("resources") or {}
    amounts = (resources.get("limits") if kind == "limits" else resources.get("requests")) or {}
    if name not in amounts:
        return None
    divisor = parse_quantity(str(reference.get("divisor") or "1"))
    if divisor.nano <= 0:
        divisor = Quantity.of_count(1)
    return str(ceil(parse_quantity(str(amounts[name])).nano / divisor.nano))


def _lines(entries: Mapping[str, str]) -> str:
    """Return a map as the file of it: sorted, and quoted as Go does."""
    quoted = (
        (key, entries[key].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for key in sorted(entries)
    )
    return "\n".join(f'{key}="{value}"' for key, value in quoted)


_FIELDS: Mapping[str, Callable[[PodObject], str]] = {
    "metadata.name": lambda pod: pod["metadata"]["name"],
    "metadata.namespace": lambda pod: pod["metadata"]["namespace"],
    "metadata.uid": lambda pod: pod["metadata"]["uid"],
    "metadata.labels": lambda pod: _lines(pod["metadata"].get("labels") or {}),
    "metadata.annotations": lambda pod: _lines(pod["metadata"].get("annotations") or {}),
    "spec.nodeName": lambda pod: pod["spec"].get("nodeName") or "",
    "spec.serviceAccountName": lambda pod: str(pod["spec"].get("serviceAccountName") or ""),
    "status.hostIP": lambda pod: str(pod.get("status", {}).get("hostIP") or ""),
    "status.podIP": lambda pod: str(pod.get("status", {}).get("podIP") or ""),
    "status.podIPs": lambda pod: ",".join(entry["ip"] for entry in pod.get("status", {}).get("podIPs") or ()),
}
