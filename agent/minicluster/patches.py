"""The patch formats of the API: strategic merge, JSON merge (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from agent.minicluster.errors import ApiError, bad_request, unprocessable
from agent.minicluster.strategic import strategic_merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.minicluster.resource import Object
    from agent.minicluster.strategic import MergeKeys

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class _NotApplicableError(Exception):
    """A JSON patch operation that does not fit the document."""


def apply_patch(original: Object, patch: Any, content_type: str, merge_keys: MergeKeys) -> Object:
    """The patched object; the original stays as it is."""
    if content_type == JSON_PATCH:
        return json_patch(original, patch)
    if content_type not in {MERGE_PATCH, STRATEGIC_MERGE_PATCH}:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if not isinstance(patch, dict):
        raise bad_request(f"error decoding patch: json: cannot unmarshal {_json_type(patch)} into a map")
    if content_type == MERGE_PATCH:
        return dict(merge_patch(original, patch))
    return strategic_merge(original, patch, merge_keys)


def merge_patch(original: Any, patch: Any) -> Any:
    """JSON merge patch: maps merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
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
