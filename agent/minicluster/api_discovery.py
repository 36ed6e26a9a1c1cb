"""API discovery: the groups, versions and resources that are served, and the part of OpenAPI that kubectl reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.core.kubelet_data.version import KUBELET_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.core.model import Object
    from agent.minicluster.strategy import Resource

_MAJOR, _MINOR, _ = KUBELET_VERSION.removeprefix("v").split(".")
VERSION: Object = {
    "major": _MAJOR,
    "minor": _MINOR,
    "gitVersion": f"{KUBELET_VERSION}+fake-kubelet",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "in-memory",
}
# The kinds of subresources that are of another kind than their resource.
_SUBRESOURCE_KINDS: dict[str, Object] = {
    "attach": {"kind": "PodAttachOptions"},
    "binding": {"kind": "Binding"},
    "eviction": {"kind": "Eviction", "group": "policy", "version": "v1"},  # kubectl drain looks for the version
    "exec": {"kind": "PodExecOptions"},
    "portforward": {"kind": "PodPortForwardOptions"},
    "proxy": {"kind": "NodeProxyOptions"},
}


def discovery_documents(resources: Sequence[Resource]) -> dict[str, Object]:
    """Return the documents of discovery by path."""
    versions = list(dict.fromkeys((resource.group, resource.version) for resource in resources))
    groups = [_group(group, version) for group, version in versions if group]
    documents: dict[str, Object] = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
    }
    index: dict[str, Object] = {}
    for group, version in versions:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        members = [resource for resource in resources if (resource.group, resource.version) == (group, version)]
        documents[path] = _resource_list(group, version, members)
        if group:
            documents[f"/apis/{group}"] = _group(group, version) | {"kind": "APIGroup", "apiVersion": "v1"}
        index[path.lstrip("/")] = {"serverRelativeURL": f"/openapi/v3{path}"}
        documents[f"/openapi/v3{path}"] = _openapi_v3(path, members)
    documents["/openapi/v3"] = {"paths": index}
    documents["/openapi/v2"] = {"swagger": "2.0", "info": _info(), "paths": {}, "definitions": {}}
    return documents


def _group(group: str, version: str) -> Object:
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": served}


def _resource_list(group: str, version: str, resources: Sequence[Resource]) -> Object:
    group_version = f"{group}/{version}" if group else version
    entries = [entry for resource in resources for entry in _entries(resource)]
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version}
    return head | {"resources": sorted(entries, key=lambda entry: str(entry["name"]))}


def _entries(resource: Resource) -> list[Object]:
    """A resource and its subresources."""
    entry: Object = {"name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced}
    entry |= {"kind": resource.kind, "verbs": list(resource.verbs)}
    for field, values in (("shortNames", resource.short_names), ("categories", resource.categories)):
        if values:
            entry[field] = list(values)
    entries = [entry]
    for name, verbs in resource.subresources.items():
        entries.append(
            {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": list(verbs),
            }
            | _SUBRESOURCE_KINDS.get(name, {})
        )
    return entries


def _info() -> Object:
    return {"title": "fake-kubelet embedded cluster", "version": VERSION["gitVersion"]}


def _openapi_v3(path: str, resources: Sequence[Resource]) -> Object:
    """Declare `fieldValidation` for PATCH, so that kubectl leaves the validation of fields to the server."""
    paths: dict[str, Any] = {}
    for resource in resources:
        home = f"{path}/namespaces/{{namespace}}" if resource.namespaced else path
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        validation = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
        operation = {"parameters": [validation], "responses": {}, "x-kubernetes-group-version-kind": kind}
        paths[f"{home}/{resource.plural}/{{name}}"] = {"patch": operation}
    return {"openapi": "3.0.0", "info": _info(), "paths": paths, "components": {"schemas": {}}}
