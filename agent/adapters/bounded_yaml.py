"""YAML that stays as large as it looks: aliases may repeat what they name a billion times, and brackets nest."""

from typing import Any

import yaml

_MOST_NODES = 200_000
_MOST_DEPTH = 100


class Excessive(yaml.MarkedYAMLError):
    """The text is small, and what it stands for is not."""


def refuse_bombs(text: str) -> None:
    """Raise Excessive for what would be too large or too deep once it is loaded, before anything is built.

    The events of the parser are read one after the other, so neither size nor depth costs anything here.
    """
    sizes: dict[str, int] = {}  # what each anchor stands for, its own aliases counted as what they name
    open_parts: list[tuple[str | None, int]] = []
    total = 0
    for event in _events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            open_parts.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            is_endless = any(anchor == event.anchor for anchor, _ in open_parts)  # it stands in what it names
            total += _MOST_NODES if is_endless else sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_parts.pop()
            if anchor:
                sizes[anchor] = total - before
        if total > _MOST_NODES:
            raise Excessive(problem="document contains excessive aliasing, or too much", problem_mark=event.start_mark)
        if len(open_parts) > _MOST_DEPTH:
            raise Excessive(problem="exceeded max depth", problem_mark=event.start_mark)


def _events(text: str) -> Any:
    try:
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return  # whoever loads it says what is wrong, in the words of their loader
