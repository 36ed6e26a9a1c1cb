"""Which of several processes hosts which nodes of a fleet: each shard has an ordinal, as the pods of a StatefulSet."""

from dataclasses import dataclass
from hashlib import blake2b

from agent.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` processes that share the nodes of a fleet."""

    ordinal: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.ordinal < self.count:
            raise ConfigError(f"shard {self.ordinal} is not one of the {self.count} from 0 to {self.count - 1}")

    def owns(self, node_name: str) -> bool:
        """Return whether this process hosts the node."""
        return owner(node_name, self.count) == self.ordinal


def owner(node_name: str, count: int) -> int:
    """Return the ordinal of the shard that hosts a node; its name is all that matters.

    Where one more shard comes, it takes over its share of the nodes, and no others move; where the last one goes,
    the others share its nodes. (Rendezvous hashing: each shard draws a number for the node, and the highest wins.)
    """
    return max(range(count), key=lambda ordinal: _draw(node_name, ordinal))


def _draw(node_name: str, ordinal: int) -> bytes:
    return blake2b(f"{ordinal}/{node_name}".encode(), digest_size=8).digest()
