"""YAML and JSON as kubelet's decoder reads them: YAML 1.1 with the scalars of Go's yaml package."""

import json
import re
from typing import Any, ClassVar, NamedTuple

import yaml

from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
_BOOL = re.compile(r"(?:y|Y|yes|Yes|YES|on|On|ON|true|True|TRUE|n|N|no|No|NO|off|Off|OFF|false|False|FALSE)\Z")
_TRUE = {"y", "yes", "on", "true"}
_INT = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)\Z")
_FLOAT = re.compile(
    r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
_NAMED = re.compile(r"(alias|tag) .*")  # where PyYAML repeats a word of the file: a token may begin with * or !
_MISFITS = (ValueError, AttributeError)  # of a tag that its value does not fit, and of a number with too many digits
_MOST_NODES = 200_000
_MOST_DEPTH = 100


class Parsed(NamedTuple):
    """The documents of a file, and the keys that stand twice in one mapping, of which the last counts."""

    documents: list[Any]
    duplicates: list[str]


def load_documents(text: str, *, most_nodes: int = _MOST_NODES) -> Parsed:
    """Load all documents of a file. Raises ConfigError with the place if it is neither YAML nor JSON.

    Whoever expects a large file may raise `most_nodes`; a text of N characters without aliases has less than N.
    """
    duplicates: list[str] = []
    if text.lstrip().startswith("{"):  # JSON may be indented with tabs, which YAML forbids
        try:
            return Parsed([json.loads(text, object_pairs_hook=lambda pairs: _last(pairs, duplicates))], duplicates)
        except RecursionError:
            raise ConfigError("json: exceeded max depth") from None
        except ValueError:
            pass  # a YAML flow mapping, then
    try:
        refuse_bombs(text, most_nodes)
        return Parsed([d for d in yaml.load_all(text, _loader(duplicates)) if d is not None], duplicates)
    except yaml.YAMLError as error:
        raise ConfigError(f"yaml: {_where(error)}") from error
    except _MISFITS as error:
        raise ConfigError(f"yaml: {error}") from error


def load_private(text: str) -> Any:
    """Load YAML that may hold secrets. Raises ConfigException with the place, and nothing of the text."""
    try:
        refuse_bombs(text)
        return next(yaml.load_all(text, _loader([])), None)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigException(where + _NAMED.sub(r"\1", error.problem or "no YAML")) from None
    except (yaml.YAMLError, *_MISFITS) as error:
        raise ConfigException(f"no YAML: {type(error).__name__}") from None


class Excessive(yaml.MarkedYAMLError):
    """A small text whose document would be too large or too deep."""


def refuse_bombs(text: str, most_nodes: int = _MOST_NODES) -> None:
    """Raise Excessive for a document that would be too large or too deep, before anything is built.

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
            total += most_nodes if is_endless else sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_parts.pop()
            if anchor:
                sizes[anchor] = total - before
        if total > most_nodes:
            raise Excessive(problem="document contains excessive aliasing, or too much", problem_mark=event.start_mark)
        if len(open_parts) > _MOST_DEPTH:
            raise Excessive(problem="exceeded max depth", problem_mark=event.start_mark)


def _events(text: str) -> Any:
    try:
        yield from yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return  # the loader will report the error


def _last(pairs: list[tuple[str, Any]], duplicates: list[str]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            duplicates.append(f'key "{key}" already set in map')
        mapping[key] = value
    return mapping


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"line {mark.line + 1}: {problem}" if mark else problem


def _loader(duplicates: list[str]) -> Any:
    """Return a new loader class, which appends the keys that it sees twice to `duplicates`."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # none of PyYAML's own

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            self.flatten_mapping(node)
            mapping: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = _key(self.construct_object(key_node, deep=True))
                if key in mapping:
                    duplicates.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
                mapping[key] = self.construct_object(value_node, deep=True)
            return mapping

    _resolve(Loader)
    return Loader


def _resolve(loader: Any) -> None:
    loader.add_implicit_resolver(f"{_TAG}bool", _BOOL, list("yYnNtTfFoO"))
    loader.add_implicit_resolver(f"{_TAG}int", _INT, list("-+0123456789"))
    loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))
    loader.add_implicit_resolver(f"{_TAG}merge", re.compile(r"<<\Z"), ["<"])
    loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""])
    loader.add_constructor(f"{_TAG}bool", lambda loader, node: _boolean(node.value))
    loader.add_constructor(f"{_TAG}int", lambda loader, node: _integer(node.value))
    loader.add_constructor(f"{_TAG}map", lambda loader, node: loader.construct_mapping(node))


def _boolean(text: str) -> bool:
    if not _BOOL.match(text):
        raise ValueError("no boolean")
    return text.lower() in _TRUE


def _integer(text: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    for prefix, base in (("0b", 2), ("0x", 16), ("0o", 8), ("0", 8)):
        if digits.startswith(prefix) and len(digits) > len(prefix):
            try:
                return sign * int(digits[len(prefix) :], base)
            except ValueError:
                break  # 09 has no octal digits: Go reads it as 9
    return sign * int(digits)


def _key(key: Any) -> str:
    """Return a key as JSON has it: a string, whatever YAML made of it."""
    return key if isinstance(key, str) else json.dumps(key)
