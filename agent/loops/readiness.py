"""Why the node is not ready yet."""

import asyncio


class Readiness:
    """The problems that keep the node from being ready, and a signal that they changed."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong now; empty when the node is ready."""
        return tuple(self._problems.values())

    def block(self, subject: str, problem: str) -> None:
        """The node is not ready because of this."""
        if self._problems.get(subject) != problem:
            self._problems[subject] = problem
            self.changed.set()

    def clear(self, subject: str) -> None:
        """This does not keep the node from being ready any more."""
        if self._problems.pop(subject, None) is not None:
            self.changed.set()
