import json

import pytest
import yaml

from agent.adapters.fleet.like import source_nodes
from agent.core.errors import ConfigError

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"images": [{"names": ["x"]}]}}
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE]}
ANSWER = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}  # items without their kind


@pytest.mark.parametrize(
    "text",
    [yaml.safe_dump(LIST), json.dumps(LIST, indent="\t"), yaml.safe_dump(NODE), json.dumps(NODE), json.dumps(ANSWER)],
)
def test_a_node_and_a_list_of_nodes_are_read_in_yaml_and_json(text):
    assert [node["metadata"]["name"] for node in source_nodes(text)] == ["a"]


def test_documents_add_up():
    assert len(source_nodes(yaml.safe_dump_all([LIST, NODE, LIST]))) == 3


def test_what_is_not_copied_is_not_kept():
    assert "images" not in source_nodes(json.dumps(NODE))[0]["status"]


def test_the_nodes_of_a_large_cluster_are_no_bomb():
    images = ",".join("x" * 200_100)
    text = f"kind: Node\nmetadata: {{name: a}}\nstatus: {{images: [{images}]}}\n"
    assert len(source_nodes(text)) == 1


def test_aliases_that_would_fill_the_memory_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="excessive aliasing"):
        source_nodes("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "there is no Node in it"),
        ('{"kind": "List", "items": []}', "there is no Node in it"),
        ('{"kind": "List"}', "there is no Node in it"),
        ("[]", "expected a Node, or a list of Nodes, got kind None"),
        ('{"kind": "Pod"}', "expected a Node, or a list of Nodes, got kind Pod"),
        ('{"kind": "List", "items": [5]}', "items[0]: expected a Node, or a list of Nodes, got kind None"),
        ('{"kind": "List", "items": [{"kind": "Pod"}]}', "items[0]: expected a Node, or a list of Nodes, got kind Pod"),
        ('{"kind": "Node"}', "metadata: missing"),
        ('{"kind": "NodeList", "items": [{"metadata": {}}]}', "items[0].metadata.name: missing"),
        (
            '{"kind": "NodeList", "items": [{"metadata": {"name": 5}}]}',
            "items[0].metadata.name: expected string, got integer",
        ),
    ],
)
def test_what_is_no_node_is_refused_with_its_place(text, error):
    with pytest.raises(ConfigError) as refusal:
        source_nodes(text)
    assert str(refusal.value) == error
