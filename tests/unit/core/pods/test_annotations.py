"""Annotations that are meant for us and say nothing."""

import pytest

from agent.core.pods.annotations import InvalidAnnotation, invalid_annotations
from tests.unit.core.pods.builders import container, pod


def faults(annotations: dict[str, str]) -> list[tuple[str, str]]:
    the_pod = pod(initContainers=[container("first")], annotations=annotations)
    return [(annotation.key, annotation.reason) for annotation in invalid_annotations(the_pod)]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("fake-kubelet.dev/usage-cpu", "60%", '"60%" is no share; write "60% of request" or "80% of limit"'),
        ("kwok.x-k8s.io/usage-memory", "-1", '"-1" is out of range'),
        ("usage-cpu.fake-kubelet.dev/other", "1m", 'the pod has no container "other"'),
        ("fake-kubelet.dev/run-for", "soon", '"soon" is no duration such as 90s, 10m or 1h'),
        ("run-for.fake-kubelet.dev/first", "soon", '"soon" is no duration such as 90s, 10m or 1h'),
        ("fake-kubelet.dev/stop-after", "", '"" is no duration such as 90s, 10m or 1h'),
        ("fake-kubelet.dev/exit-code", "-1", '"-1" is no exit code from 0 to 999'),
    ],
)
def test_an_annotation_that_says_nothing_is_named(key: str, value: str, reason: str) -> None:
    assert faults({key: value, "example.com/x": "y"}) == [(key, reason)]


def test_an_annotation_that_says_something_is_none_of_them() -> None:
    assert faults({"fake-kubelet.dev/usage-cpu": "noise(200m,10%)", "exit-code.fake-kubelet.dev/first": "3"}) == []
    assert faults({"example.com/run-for": "soon", "fake-kubelet.dev/unheard-of": "x", "kwok.x-k8s.io/x": "y"}) == []


def test_of_many_wrong_annotations_the_first_ten_are_named() -> None:
    assert len(faults({f"run-for.fake-kubelet.dev/x{number}": "1s" for number in range(1000)})) == 10


def test_the_event_names_key_and_value_and_is_short() -> None:
    event = InvalidAnnotation("fake-kubelet.dev/run-for", "soon", "why").event
    assert event == ("InvalidFakeKubeletAnnotation", 'fake-kubelet.dev/run-for="soon" is ignored: why', "Warning", "")
    assert len(InvalidAnnotation("k", "x" * 10_000, "y" * 10_000).event.message) < 300
