"""Why the node is not ready yet."""

from collections.abc import Callable


class Readiness:
    """The problems that keep the node from being ready."""

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}
        self._listeners: list[Callable[[], None]] = []

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now; empty when the node is ready."""
        return tuple(self._problems.values())

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call this after every change."""
        self._listeners.append(listener)

    def changed(self) -> None:
        """Something that the status depends on has changed."""
        for listener in self._listeners:
            listener()

    def block(self, subject: str, problem: str) -> None:
        """The node is not ready because of this."""
        if self._problems.get(subject) != problem:
            self._problems[subject] = problem
            self.changed()

    def clear(self, subject: str) -> None:
        """This does not keep the node from being ready any more."""
        if self._problems.pop(subject, None) is not None:
            self.changed()
