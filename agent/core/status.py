"""The ordered list of setters, and the status they make."""

from collections.abc import Callable
from typing import NamedTuple

from agent.core.addresses import addresses
from agent.core.capacity import allocatable, capacity
from agent.core.conditions import conditions
from agent.core.facts import Facts, FieldError
from agent.core.model import Object
from agent.core.nodeinfo import daemon_endpoints, declared_features, node_info

Setter = Callable[[Facts], Object]

SETTERS: tuple[Setter, ...] = (
    addresses,
    capacity,
    allocatable,
    node_info,
    daemon_endpoints,
    conditions,
    declared_features,
)


class Desired(NamedTuple):
    """The status this Node should carry, and why some fields could not be set."""

    status: Object
    errors: tuple[str, ...]


def desired_status(facts: Facts) -> Desired:
    """The status this Node should carry now: same facts, same answer; what others wrote is kept."""
    status, errors = dict(facts.observed), []
    for setter in SETTERS:
        try:
            status |= setter(facts)
        except FieldError as error:
            errors.append(str(error))
    return Desired(status, tuple(errors))
