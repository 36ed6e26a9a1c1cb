"""What a container can read about its pod."""

from typing import Any

import pytest

from agent.core.pods.environment import environment, file
from tests.unit.core.pods.builders import container, pod

INDEX = "batch.kubernetes.io/job-completion-index"


def variables(*entries: dict[str, Any], **fields: Any) -> dict[str, str]:
    spec = container(env=list(entries), resources={"limits": {"cpu": "1500m", "memory": "64Mi"}})
    return environment(pod(spec, **fields), spec)


def field(path: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def resource(name: str, **fields: str) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"resourceFieldRef": {"resource": name, **fields}}}


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"name": "X", "value": "a"}, "a"),
        ({"name": "X"}, ""),
        (field("metadata.name"), "p"),
        (field("metadata.namespace"), "ns"),
        (field("metadata.uid"), "u1"),
        (field(f"metadata.annotations['{INDEX}']"), "3"),
        (field("metadata.labels['app']"), "web"),
        (field("metadata.labels['other']"), ""),
        (field("spec.nodeName"), "n1"),
        (field("status.podIP"), "10.0.0.2"),
        (field("status.podIPs"), "10.0.0.2,fd00::2"),
        (resource("limits.cpu"), "2"),
        (resource("limits.cpu", divisor="1m"), "1500"),
        (resource("limits.memory", divisor="1Mi"), "64"),
    ],
)
def test_a_variable_has_the_value_that_the_pod_says(entry: dict[str, Any], value: str) -> None:
    status = {"podIP": "10.0.0.2", "podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd00::2"}]}
    found = variables(entry, annotations={INDEX: "3"}, labels={"app": "web"}, nodeName="n1", status=status)
    assert found == {"X": value}


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        field("spec.hostname"),
        resource("requests.cpu"),  # would be the node's
    ],
)
def test_a_variable_from_elsewhere_is_unknown(entry: dict[str, Any]) -> None:
    assert variables({"name": "X", "value": "before"}, entry) == {}


def test_a_value_can_name_the_variables_before_it() -> None:
    found = variables(
        {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$$(A)-$(C)"}, {"name": "C", "value": "2"}
    )
    assert found["B"] == "1-$(A)-$(C)"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/etc/podinfo/name", "p"),
        ("/etc/podinfo/deep/labels", 'app="web"\nquote="a\\"b"'),
        ("/etc/podinfo/../podinfo/name", "p"),
        ("/etc/projected/cpu", "2"),
        ("/etc/podinfo/other", None),
        ("/etc/passwd", None),
    ],
)
def test_a_file_of_the_downward_api_has_its_content(path: str, content: str | None) -> None:
    spec = container(
        volumeMounts=[{"name": "info", "mountPath": "/etc/podinfo"}, {"name": "all", "mountPath": "/etc/projected"}],
        resources={"limits": {"cpu": "1500m"}},
    )
    items = [
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "deep/labels", "fieldRef": {"fieldPath": "metadata.labels"}},
    ]
    cpu = {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}}
    volumes = [
        {"name": "info", "downwardAPI": {"items": items}},
        {"name": "all", "projected": {"sources": [{"secret": {"name": "s"}}, {"downwardAPI": {"items": [cpu]}}]}},
    ]
    assert file(pod(spec, labels={"app": "web", "quote": 'a"b'}, volumes=volumes), spec, path) == content
