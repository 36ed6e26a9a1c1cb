"""Two sets of Kubernetes objects compared field by field, with a list of what may differ."""

import re
from collections.abc import Iterator, Sequence
from typing import Any


def differences(kubelet: dict[str, Any], ours: dict[str, Any], allowed: Sequence[Any]) -> list[str]:
    """One line for each field that differs and may not."""
    theirs_flat, ours_flat = dict(_flat(kubelet)), dict(_flat(ours))
    lines = []
    for path in sorted(theirs_flat.keys() | ours_flat.keys()):
        left, right = theirs_flat.get(path, "(absent)"), ours_flat.get(path, "(absent)")
        if left != right and not _allowed(path, allowed):
            lines.append(f"{path}: kubelet {left!r}, fake-kubelet {right!r}")
    return lines


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _flat(child, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, child in enumerate(value):
            yield from _flat(child, f"{path}.{index}")
    else:
        yield path, value


def _allowed(path: str, allowed: Sequence[Any]) -> bool:
    return any(re.fullmatch(entry["path"], path) for entry in allowed)
