"""Objects on their way from the wire to the store: cleaned, ordered, identified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.minicluster.errors import bad_request
from agent.minicluster.resource import MalformedError

if TYPE_CHECKING:
    from agent.minicluster.resource import Object, Resource

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
)
_SYSTEM_FIELDS = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def decoded(resource: Resource, body: Any) -> Object:
    """The object a client sent, in the form the store keeps; raises MalformedError when types do not fit."""
    if not isinstance(body, dict):
        raise MalformedError(f"cannot be decoded into a {resource.kind}")
    given = resource.from_wire(body) if resource.from_wire else body
    obj: Object = {"kind": resource.kind, "apiVersion": given.get("apiVersion") or resource.api_version}
    obj["metadata"] = _metadata(given.get("metadata") or {})
    obj |= {part: _without_nulls(value) for part, value in given.items() if part not in obj and value is not None}
    for part in ("spec", "status"):
        if not isinstance(obj.get(part, {}), dict):
            raise MalformedError(f"json: cannot unmarshal into field {resource.kind}.{part}")
    try:
        resource.rules.decode(obj)
    except (AttributeError, KeyError, TypeError) as error:
        raise MalformedError(f"json: a field has another type than {resource.kind} gives it ({error})") from error
    return obj


def check_type(resource: Resource, body: Any) -> None:
    """The body claims to be what the path says, or claims nothing."""
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
    kind, version = body.get("kind") or resource.kind, body.get("apiVersion") or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        short = version.rpartition("/")[2]
        raise bad_request(f'{kind} in version "{short}" cannot be handled as a {resource.kind}: unknown conversion')


def _metadata(given: Any) -> Object:
    if not isinstance(given, dict):
        raise MalformedError("json: cannot unmarshal into field ObjectMeta.metadata")
    for field in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(given.get(field) or "", str):
            raise MalformedError(
                f"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.{field} of type string"
            )
    for field in ("labels", "annotations"):
        if not all(isinstance(value, str) for value in (given.get(field) or {}).values()):
            raise MalformedError(
                f"json: cannot unmarshal number into Go struct field ObjectMeta.metadata.{field} of type string"
            )
    # What is empty is not written; managedFields are not kept here at all.
    return {field: _without_nulls(given[field]) for field in _METADATA_ORDER if given.get(field)}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def identified(obj: Object, *, uid: str, now: str) -> Object:
    """A new object with what only the server may set."""
    kept = {key: value for key, value in obj["metadata"].items() if key not in _SYSTEM_FIELDS}
    return obj | {"metadata": ordered(kept | {"uid": uid, "resourceVersion": "", "creationTimestamp": now})}


def inherit(new: Object, old: Object) -> Object:
    """A new state of an object with what an update may not change."""
    kept = {field: old["metadata"][field] for field in _SYSTEM_FIELDS if field in old["metadata"]}
    free = {key: value for key, value in new["metadata"].items() if key not in _SYSTEM_FIELDS}
    version = {"resourceVersion": old["metadata"]["resourceVersion"]}
    return new | {"apiVersion": old["apiVersion"], "metadata": ordered(free | kept | version)}


def ordered(metadata: Object) -> Object:
    """The metadata in the order the API writes it."""
    return {field: metadata[field] for field in _METADATA_ORDER if field in metadata}
