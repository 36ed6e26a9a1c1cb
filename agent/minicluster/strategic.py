"""Strategic merge patch: JSON merge that knows which lists have keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agent.minicluster.errors import bad_request
from agent.minicluster.resource import MergeKey, Object

Path: TypeAlias = tuple[str, ...]
MergeKeys: TypeAlias = Mapping[Path, MergeKey]

_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"
_METADATA_KEYS: MergeKeys = {
    ("metadata", "ownerReferences"): MergeKey("uid"),
    ("metadata", "finalizers"): MergeKey(),
}


def strategic_merge(original: Object, patch: Object, merge_keys: MergeKeys) -> Object:
    """The original with the patch applied; neither is changed."""
    return _merge_map(original, patch, (), {**_METADATA_KEYS, **merge_keys})


def _merge_map(original: Object, patch: Object, path: Path, keys: MergeKeys) -> Object:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return dict(_plain(patch))
    if directive not in {None, "merge"}:
        raise bad_request(f"Unknown patch type found: {directive}")
    merged = _retained(original, patch)
    for field, values in _directives(patch, _REMOVE):
        merged[field] = [value for value in merged.get(field) or [] if value not in values]
    for field in patch:
        if not field.startswith("$"):
            _merge_field(merged, patch, (*path, field), keys)
    for field, order in _directives(patch, _ORDER):
        if field not in patch and isinstance(merged.get(field), list):
            merged[field] = _in_order(merged[field], order, merged[field], _identity(keys.get((*path, field))))
    return merged


def _retained(original: Object, patch: Object) -> Object:
    retain = patch.get("$retainKeys")
    if retain is None:
        return dict(original)
    return {key: value for key, value in original.items() if key in retain}


def _directives(patch: Object, prefix: str) -> list[tuple[str, list[Any]]]:
    found = [(key.removeprefix(prefix), value) for key, value in patch.items() if key.startswith(prefix)]
    for field, value in found:
        if not isinstance(value, list):
            raise bad_request(f"invalid patch format of {prefix}{field}: not a list")
    return found


def _merge_field(merged: Object, patch: Object, path: Path, keys: MergeKeys) -> None:
    """Bring one field of the patch, the last of the path, into the merged map."""
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


def _merge_list(original: list[Any], patch: list[Any], rule: MergeKey, path: Path, keys: MergeKeys) -> list[Any]:
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


def _merge_item(merged: list[Any], item: Object, key: str, path: Path, keys: MergeKeys) -> None:
    """Merge one keyed element into a list, or append it."""
    matching = [index for index, one in enumerate(merged) if key in item and one.get(key) == item[key]]
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
    wanted = [identity(one) for one in order]
    before = [identity(one) for one in live]
    ours = sorted((one for one in items if identity(one) in wanted), key=lambda one: wanted.index(identity(one)))
    theirs = [one for one in items if identity(one) not in wanted]
    result: list[Any] = []
    for one in ours:
        while theirs and 0 <= _place(theirs[0], before, identity) < _place(one, before, identity):
            result.append(theirs.pop(0))
        result.append(one)
    return result + theirs


def _place(item: Any, order: Sequence[Any], identity: Callable[[Any], Any]) -> int:
    return order.index(identity(item)) if identity(item) in order else -1


def _plain(value: Any) -> Any:
    """A value from the patch without nulls in maps and without directives."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None and not key.startswith("$")}
    return [_plain(one) for one in value] if isinstance(value, list) else value
