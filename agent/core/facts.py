"""Everything a setter may know, and the error it may raise."""

from dataclasses import dataclass
from datetime import datetime

from agent.core.config import Config
from agent.core.model import HostSnapshot, Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The host, the settings, what the API server shows, and the time: all that a status depends on."""

    config: Config
    host: HostSnapshot
    observed: Object  # the Node's status as last seen; empty for a Node not created yet
    pressure: frozenset[str]  # the pressure conditions that hold
    problems: tuple[str, ...]  # why the node is not ready; empty when it is
    now: datetime


class FieldError(Exception):
    """A setter cannot fill its fields; they keep their previous value."""
