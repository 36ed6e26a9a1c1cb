"""What a request asks for: the resource that its path names, and the options and selectors of its query."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.minicluster.status_errors import StatusCause, StatusError, bad_request, invalid, no_such_path

if TYPE_CHECKING:
    from agent.core.model import Object
    from agent.minicluster.strategy import Resource

Predicate = Callable[["Object"], bool]

_TRUE = {"1", "true", "True", "TRUE", "t", "T"}
_DURATION = re.compile(r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|0")
_FIELD_TERM = re.compile(r"^(?P<label>.*?)(?P<operator>!=|==|=)(?P<value>.*)$")
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_TOKEN = re.compile(r"\s*(notin(?=[\s(])|in(?=[\s(])|!=|==|=|!|<|>|\(|\)|,|[^\s!=<>(),]+)")
_OPERATORS = {"=", "==", "!=", "in", "notin", "<", ">"}


def everything(_: Object) -> bool:
    """Match any object."""
    return True


def both(first: Predicate, second: Predicate) -> Predicate:
    """Match what two selectors match."""
    if first is everything:
        return second
    return first if second is everything else lambda obj: first(obj) and second(obj)


def in_namespace(namespace: str, matches: Predicate) -> Predicate:
    """Limit a selector to a namespace; an empty one means all."""
    if not namespace:
        return matches
    return lambda obj: obj["metadata"].get("namespace") == namespace and matches(obj)


def field_selector(text: str, resource: Resource) -> Predicate:
    """The predicate of a `fieldSelector`; a label the resource does not know is a bad request."""
    if not text:
        return everything
    terms = [_field_term(term, text, resource) for term in _UNESCAPED_COMMA.split(text) if term]
    return lambda obj: all(term(obj) for term in terms)


def _field_term(term: str, text: str, resource: Resource) -> Predicate:
    match = _FIELD_TERM.match(term)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    read = _field_reader(match["label"], resource)
    value = re.sub(r"\\(.)", r"\1", match["value"])
    wanted = match["operator"] != "!="
    return lambda obj: (read(obj) == value) is wanted


def _field_reader(label: str, resource: Resource) -> Callable[[Object], str]:
    if label in resource.field_labels:
        return resource.field_labels[label]
    if label == "metadata.name" or (label == "metadata.namespace" and resource.namespaced):
        part = label.removeprefix("metadata.")
        return lambda obj: str(obj["metadata"].get(part, ""))
    if resource.generic_field_labels:
        supported = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{label}" is not a known field selector: only {supported}')
    raise bad_request(f"field label not supported: {label}")


def label_selector(text: str) -> Predicate:
    """The predicate of a `labelSelector`, in equality or set syntax."""
    if not text.strip():
        return everything
    requirements = _LabelSelectorParser(text).parse()
    return lambda obj: all(matches(obj["metadata"].get("labels") or {}) for matches in requirements)


LabelPredicate = Callable[[Mapping[str, str]], bool]


class _LabelSelectorParser:
    """Parses a label selector token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._position = 0

    def parse(self) -> list[LabelPredicate]:
        """All requirements, in order."""
        requirements = [self._requirement()]
        while self._position < len(self._tokens):
            self._expect(",")
            requirements.append(self._requirement())
        return requirements

    def _peek(self) -> str:
        return self._tokens[self._position] if self._position < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._position += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise bad_request(f"unable to parse requirement: found '{token}' expected: '{wanted}'")

    def _requirement(self) -> LabelPredicate:
        if self._peek() == "!":
            self._next()
            absent = self._next()
            return lambda labels: absent not in labels
        key = self._next()
        if not key or key in _OPERATORS or key in "(),":
            raise bad_request(f"unable to parse requirement: found '{key}', expected: identifier")
        if self._peek() not in _OPERATORS:
            return lambda labels: key in labels
        return _test(key, self._next(), self)

    def value(self) -> str:
        """The plain value after an operator; it may be empty."""
        return "" if self._peek() in {"", ","} else self._next()

    def values(self) -> frozenset[str]:
        """The set in parentheses after `in` or `notin`."""
        self._expect("(")
        values = set()
        while self._peek() not in {"", ")"}:
            values.add(self._next())
            if self._peek() == ",":
                self._next()
        self._expect(")")
        return frozenset(values or {""})


def _test(key: str, operator: str, parser: _LabelSelectorParser) -> LabelPredicate:
    if operator in {"in", "notin"}:
        values = parser.values()
        wanted = operator == "in"
        return lambda labels: (labels.get(key) in values) is wanted
    value = parser.value()
    if operator in {"=", "=="}:
        return lambda labels: labels.get(key) == value
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    if not re.fullmatch(r"-?\d+", value):
        raise bad_request(
            f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    return _compared(key, operator, int(value))


def _compared(key: str, operator: str, limit: int) -> LabelPredicate:
    def test(labels: Mapping[str, str]) -> bool:
        text = labels.get(key, "")
        if not re.fullmatch(r"-?\d+", text):
            return False
        return int(text) > limit if operator == ">" else int(text) < limit

    return test


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The resource, object or subresource that a path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class ResourceTable:
    """Finds the resource behind a path."""

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        self.resources = resources
        self._by_path = {(resource.group, resource.version, resource.plural): resource for resource in resources}

    def resolve(self, path: str) -> RequestInfo:
        """Resolve `/api/v1/...` or `/apis/GROUP/VERSION/...`; 404 if there is no such resource."""
        parts = [part for part in path.split("/") if part]
        if parts[0] == "api":
            group, rest = "", parts[1:]
        else:
            group, rest = parts[1], parts[2:]
        version, rest = rest[0], rest[1:]
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces" and (group, version, rest[2]) in self._by_path:
            namespace, rest = rest[1], rest[2:]
        resource = self._by_path.get((group, version, rest[0]))
        is_proxy = rest[2:3] == ["proxy"]  # what follows is a path of the kubelet's
        if resource is None or (len(rest) > 3 and not is_proxy) or (namespace and not resource.namespaced):
            raise no_such_path()
        info = RequestInfo(resource, namespace, *rest[1:3])
        if info.subresource and info.subresource not in resource.subresources:
            raise no_such_path()
        return info


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The query of a list or a watch."""

    matches: Predicate = everything
    selective: bool = False
    limit: int = 0
    continue_token: str = ""
    version: int | None = None
    exact: bool = False
    watch: bool = False
    timeout_seconds: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def list_options(query: Mapping[str, str], resource: Resource) -> ListOptions:
    """Parse the query of a list or a watch. Raises StatusError (400) if it cannot."""
    fields, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
    options = ListOptions(
        matches=both(field_selector(fields, resource), label_selector(labels)),
        selective=bool(fields or labels),
        limit=_integer(query.get("limit", "")) or 0,
        continue_token=query.get("continue", ""),
        version=_version(query.get("resourceVersion", "")),
        exact=query.get("resourceVersionMatch") == "Exact",
        watch=query_flag(query, "watch"),
        timeout_seconds=_integer(query.get("timeoutSeconds", "")),
        bookmarks=query_flag(query, "allowWatchBookmarks"),
        initial_events=query_flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    _check_initial_events(options, query.get("resourceVersionMatch", ""))
    return options


def _check_initial_events(options: ListOptions, match: str) -> None:
    if options.watch and options.initial_events is not None and match != "NotOlderThan":
        rule = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid("ListOptions", "meta.k8s.io", "", [StatusCause.forbidden("resourceVersionMatch", rule)])
    if options.watch and options.initial_events is None and match:
        rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid("ListOptions", "meta.k8s.io", "", [StatusCause.forbidden("resourceVersionMatch", rule)])


def query_flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean of the query."""
    return query.get(name, "") in _TRUE


def check_timeout(query: Mapping[str, str]) -> None:
    """Check that `timeout` is a Go duration; it has no further effect, as every request is answered at once."""
    text = query.get("timeout", "")
    if text and not _DURATION.fullmatch(text):
        raise bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{text}"')


def _integer(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _version(text: str) -> int | None:
    if not text:
        return None
    if not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)
