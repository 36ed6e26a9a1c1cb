"""The Nodes of another cluster, as `kubectl get nodes -o yaml` or `-o json` prints them."""

from collections.abc import Iterator

from agent.adapters.fleet.documents import decoded
from agent.adapters.go_yaml import load_documents
from agent.core.errors import ConfigError
from agent.core.node_copy import SourceNode

_LISTS = ("List", "NodeList")


def source_nodes(text: str) -> list[SourceNode]:
    """Return the Nodes of a text: a list, or documents. Raises ConfigError with the place of what is no Node."""
    documents = load_documents(text, most_nodes=len(text) + 1).documents  # thousands of Nodes are no bomb
    nodes = [_source_node(item, place) for document in documents for place, item in _items(document)]
    if not nodes:
        raise ConfigError("there is no Node in it")
    return nodes


def _items(document: object) -> Iterator[tuple[str, object]]:
    """Yield the objects of a document, each with its place."""
    if not isinstance(document, dict) or document.get("kind") not in _LISTS:
        yield "", document
        return
    items = document.get("items")
    for position, item in enumerate(items if isinstance(items, list) else ()):
        yield f"items[{position}]", item


def _source_node(item: object, place: str) -> SourceNode:
    kind = item.get("kind", "Node" if place else None) if isinstance(item, dict) else None
    if kind != "Node":
        where = f"{place}: " if place else ""
        raise ConfigError(f"{where}expected a Node, or a list of Nodes, got kind {kind}")
    return decoded(SourceNode, item, place)
