"""Field and label selectors: text in, predicate out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent.minicluster.errors import bad_request

if TYPE_CHECKING:
    from agent.minicluster.resource import Object, Resource

Predicate = Callable[["Object"], bool]

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
        known = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{label}" is not a known field selector: only {known}')
    raise bad_request(f"field label not supported: {label}")


def label_selector(text: str) -> Predicate:
    """The predicate of a `labelSelector`, in equality or set syntax."""
    if not text.strip():
        return everything
    requirements = _Requirements(text).parse()
    return lambda obj: all(matches(obj["metadata"].get("labels") or {}) for matches in requirements)


LabelTest = Callable[[Mapping[str, str]], bool]


class _Requirements:
    """Reads a label selector word by word."""

    def __init__(self, text: str) -> None:
        self._words = _TOKEN.findall(text)
        self._at = 0

    def parse(self) -> list[LabelTest]:
        """All requirements, in order."""
        found = [self._requirement()]
        while self._at < len(self._words):
            self._expect(",")
            found.append(self._requirement())
        return found

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self) -> str:
        word = self._peek()
        self._at += 1
        return word

    def _expect(self, wanted: str) -> None:
        word = self._next()
        if word != wanted:
            raise bad_request(f"unable to parse requirement: found '{word}' expected: '{wanted}'")

    def _requirement(self) -> LabelTest:
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
        found = set()
        while self._peek() not in {"", ")"}:
            found.add(self._next())
            if self._peek() == ",":
                self._next()
        self._expect(")")
        return frozenset(found or {""})


def _test(key: str, operator: str, words: _Requirements) -> LabelTest:
    if operator in {"in", "notin"}:
        values = words.values()
        return (lambda labels: labels.get(key) in values) if operator == "in" else _not_in(key, values)
    value = words.value()
    if operator in {"=", "=="}:
        return lambda labels: labels.get(key) == value
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    if not re.fullmatch(r"-?\d+", value):
        raise bad_request(
            f"values[0][{key}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
        )
    return _compared(key, operator, int(value))


def _not_in(key: str, values: frozenset[str]) -> LabelTest:
    return lambda labels: labels.get(key) not in values


def _compared(key: str, operator: str, limit: int) -> LabelTest:
    def test(labels: Mapping[str, str]) -> bool:
        text = labels.get(key, "")
        if not re.fullmatch(r"-?\d+", text):
            return False
        return int(text) > limit if operator == ">" else int(text) < limit

    return test
