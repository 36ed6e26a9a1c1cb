"""The patch formats of the API: strategic merge, JSON merge (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agent.core.model import Object
from agent.minicluster.status_errors import StatusError, bad_request, unprocessable
from agent.minicluster.strategy import MergeKey

FieldPath: TypeAlias = tuple[str, ...]
MergeKeys: TypeAlias = Mapping[FieldPath, MergeKey]

_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"
_METADATA_KEYS: MergeKeys = {
    ("metadata", "ownerReferences"): MergeKey("uid"),
    ("metadata", "finalizers"): MergeKey(),
}

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class _NotApplicableError(Exception):
    """A JSON patch operation that does not fit the document."""


def apply_patch(original: Object, patch: Any, content_type: str, merge_keys: MergeKeys) -> Object:
    """Return the patched object; the original is not changed."""
    if content_type == JSON_PATCH:
        return json_patch(original, patch)
    if content_type not in {MERGE_PATCH, STRATEGIC_MERGE_PATCH}:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {_json_type(patch)} into a map")
    if content_type == MERGE_PATCH:
        return dict(json_merge_patch(original, patch))
    return strategic_merge(original, patch, merge_keys)


def json_merge_patch(original: Any, patch: Any) -> Any:
    """JSON merge patch: maps merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = json_merge_patch(merged.get(key), value)
    return merged


def json_patch(original: Object, patch: Any) -> Object:
    """JSON patch: a list of operations, all or nothing."""
    if not isinstance(patch, list):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {_json_type(patch)} into a list of operations")
    document: Any = copy.deepcopy(original)
    try:
        for operation in patch:
            document = _operate(document, operation)
    except (_NotApplicableError, KeyError) as error:
        raise unprocessable() from error
    if not isinstance(document, dict):
        raise unprocessable()
    return document


def _operate(document: Any, operation: Object) -> Any:
    verb, path = operation["op"], _pointer(operation["path"])
    if verb == "add":
        return _add(document, path, copy.deepcopy(operation["value"]))
    if verb == "remove":
        return _remove(document, path)
    if verb == "replace":
        _at(document, path)
        return _add(_remove(document, path), path, copy.deepcopy(operation["value"])) if path else operation["value"]
    if verb == "move":
        moved = _at(document, _pointer(operation["from"]))
        return _add(_remove(document, _pointer(operation["from"])), path, moved)
    if verb == "copy":
        return _add(document, path, copy.deepcopy(_at(document, _pointer(operation["from"]))))
    if verb == "test" and _at(document, path) == operation.get("value"):
        return document
    raise _NotApplicableError(verb)


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise _NotApplicableError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1)]
        else:
            raise _NotApplicableError(part)
    return document


def _index(part: str, highest: int) -> int:
    if not part.isdigit() or int(part) > highest:
        raise _NotApplicableError(part)
    return int(part)


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(last, len(parent)), value)
    else:
        raise _NotApplicableError(last)
    return document


def _remove(document: Any, path: Sequence[str]) -> Any:
    if not path:
        raise _NotApplicableError("the whole document")
    _at(document, path)
    parent, last = _at(document, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _json_type(value: Any) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
    return names.get(type(value), "null")


def strategic_merge(original: Object, patch: Object, merge_keys: MergeKeys) -> Object:
    """The original with the patch applied; neither is changed."""
    return _merge_map(original, patch, (), {**_METADATA_KEYS, **merge_keys})


def _merge_map(original: Object, patch: Object, path: FieldPath, keys: MergeKeys) -> Object:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return dict(_plain(patch))
    if directive not in {None, "merge"}:
        raise bad_request(f"Unknown patch type found: {directive}")
    retained = patch.get("$retainKeys")
    merged = {key: value for key, value in original.items() if retained is None or key in retained}
    for field, values in _directives(patch, _REMOVE):
        merged[field] = [value for value in merged.get(field) or [] if value not in values]
    for field in patch:
        if not field.startswith("$"):
            _merge_field(merged, patch, (*path, field), keys)
    for field, order in _directives(patch, _ORDER):
        if field not in patch and isinstance(merged.get(field), list):
            merged[field] = _in_order(merged[field], order, merged[field], _identity(keys.get((*path, field))))
    return merged


def _directives(patch: Object, prefix: str) -> list[tuple[str, list[Any]]]:
    directives = [(key.removeprefix(prefix), value) for key, value in patch.items() if key.startswith(prefix)]
    for field, value in directives:
        if not isinstance(value, list):
            raise bad_request(f"invalid patch format of {prefix}{field}: not a list")
    return directives


def _merge_field(merged: Object, patch: Object, path: FieldPath, keys: MergeKeys) -> None:
    """Merge one field of the patch, the last of the path, into the map."""
    field, rule = path[-1], keys.get(path)
    before, value, order = merged.get(field), patch[field], patch.get(_ORDER + field)
    if value is None:
        merged.pop(field, None)
    elif isinstance(value, dict):
        merged[field] = _merge_map(before if isinstance(before, dict) else {}, value, path, keys)
        if value.get("$patch") == "delete":
            del merged[field]
    elif isinstance(value, list) and rule is not None:
        old = before if isinstance(before, list) else []
        new = _merge_list(old, value, rule, path, keys)
        merged[field] = _in_order(new, order, old, _identity(rule)) if order is not None else new
    else:
        merged[field] = _plain(value)


def _merge_list(original: list[Any], patch: list[Any], rule: MergeKey, path: FieldPath, keys: MergeKeys) -> list[Any]:
    if not rule.key:
        return original + [value for value in dict.fromkeys(patch) if value not in original]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [_plain(item) for item in patch if item.get("$patch") != "replace"]
    merged = list(original)
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request("expected a list of maps with a merge key")
        _merge_item(merged, item, rule.key, path, keys)
    return merged


def _merge_item(merged: list[Any], item: Object, key: str, path: FieldPath, keys: MergeKeys) -> None:
    """Merge one keyed element into a list, or append it."""
    matching = [index for index, element in enumerate(merged) if key in item and element.get(key) == item[key]]
    if item.get("$patch") == "delete":
        for index in reversed(matching):
            del merged[index]
    elif matching:
        merged[matching[0]] = _merge_map(merged[matching[0]], item, path, keys)
    else:
        merged.append(_plain(item))


def _identity(rule: MergeKey | None) -> Callable[[Any], Any]:
    key = rule.key if rule else ""
    return (lambda item: item.get(key)) if key else (lambda item: item)


def _in_order(items: list[Any], order: Sequence[Any], live: Sequence[Any], identity: Callable[[Any], Any]) -> list[Any]:
    """Sort by the patch's order; elements only the server has stay before those they preceded."""
    wanted = [identity(item) for item in order]
    before = [identity(item) for item in live]
    patched = sorted(
        (item for item in items if identity(item) in wanted), key=lambda item: wanted.index(identity(item))
    )
    server_only = [item for item in items if identity(item) not in wanted]
    result: list[Any] = []
    for item in patched:
        while server_only and 0 <= _index_in(server_only[0], before, identity) < _index_in(item, before, identity):
            result.append(server_only.pop(0))
        result.append(item)
    return result + server_only


def _index_in(item: Any, order: Sequence[Any], identity: Callable[[Any], Any]) -> int:
    return order.index(identity(item)) if identity(item) in order else -1


def _plain(value: Any) -> Any:
    """Return a value of the patch without nulls in maps and without directives."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None and not key.startswith("$")}
    return [_plain(item) for item in value] if isinstance(value, list) else value
