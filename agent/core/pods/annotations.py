"""Annotations of a pod that are meant for us and say nothing: the pod lives as if they were not there."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from agent.core.model import PodObject
from agent.core.pods.accessors import annotations_of, placed_containers
from agent.core.pods.events import PodEvent
from agent.core.pods.termination import check_code, check_seconds
from agent.core.pods.usage import check_usage

_DOMAIN = "fake-kubelet.dev"
_REASON = "InvalidFakeKubeletAnnotation"
_MOST = 10  # of one pod: a pod may have thousands of annotations
_SHOWN_CHARACTERS = 100

Check = Callable[[str], str]
"""Returns why a value says nothing; an empty text where it says something."""


class InvalidAnnotation(NamedTuple):
    """An annotation that says nothing, and why."""

    key: str
    value: str
    reason: str

    @property
    def event(self) -> PodEvent:
        """The event that reports it."""
        message = f'{self.key}="{_cut(self.value)}" is ignored: {_cut(self.reason)}'
        return PodEvent(_REASON, message, "Warning")


def invalid_annotations(pod: PodObject) -> Iterator[InvalidAnnotation]:
    """Yield the annotations that say nothing, the first ones of many."""
    ours = [(key, value) for key, value in annotations_of(pod).items() if _DOMAIN in key or key in _OF_POD]
    if ours:
        names = {container["name"] for _, container in placed_containers(pod)}
        invalid = (InvalidAnnotation(key, value, _fault(key, value, names)) for key, value in ours)
        yield from islice((annotation for annotation in invalid if annotation.reason), _MOST)


def _fault(key: str, value: str, names: set[str]) -> str:
    if check := _OF_POD.get(key):
        return check(value)
    prefix, _, name = key.partition("/")
    check = _OF_CONTAINER.get(prefix)
    if check is None:
        return ""
    return check(value) if name in names else f'the pod has no container "{name}"'


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


_CHECKS: dict[str, Check] = {
    "run-for": check_seconds,
    "exit-code": check_code,
    "usage-cpu": check_usage,
    "usage-memory": check_usage,
}
_OF_CONTAINER = {f"{name}.{_DOMAIN}": check for name, check in _CHECKS.items()}
_OF_POD = {
    **{f"{_DOMAIN}/{name}": check for name, check in _CHECKS.items()},
    f"{_DOMAIN}/stop-after": check_seconds,
    "kwok.x-k8s.io/usage-cpu": check_usage,
    "kwok.x-k8s.io/usage-memory": check_usage,
}
