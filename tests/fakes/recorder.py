"""A recorder of events that only remembers."""

from typing import TYPE_CHECKING

from agent.core.events import EventLike
from agent.core.model import Object
from agent.ports import Recorder


class FakeRecorder:
    """The events that were recorded, each with the name of what it is about; "" is the Node."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.forgotten: list[str] = []

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason in self.events]

    def record(self, event: EventLike, about: Object | None = None) -> None:
        self.events.append((about["name"] if about else "", event.reason))

    def forget(self, uid: str) -> None:
        self.forgotten.append(uid)


if TYPE_CHECKING:
    _: Recorder = FakeRecorder()
