"""When the conditions of nodes change, as the API server tells it to whoever watches."""

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from tests.cluster.control_plane import ControlPlane
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually

_WATCH_SECONDS = 5  # so long a watch may outlast its use


class Told:
    """Follows several nodes at once, and notes the moment of each change."""

    def __init__(self, control_plane: ControlPlane, names: Sequence[str]) -> None:
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(control_plane, name)) for name in names]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def after(self, name: str, status: str, since: Mapping[str, float]) -> dict[str, float]:
        """By condition, the seconds from its beginning until the node told this status, waiting if need be."""
        return {kind: max(0.0, self._moment(name, kind, status) - start) for kind, start in since.items()}

    def _moment(self, name: str, kind: str, status: str) -> float:
        return eventually(
            lambda: (seen := self._seen.get((name, kind))) and seen[0] == status and seen, within=90, every=0.02
        )[1]

    def _follow(self, control_plane: ControlPlane, name: str) -> None:
        while not self._over.is_set():  # each watch begins with the Node as it is
            with NodeView(control_plane, name).watch(_WATCH_SECONDS) as states:
                for node in states:
                    self._note(name, node)

    def _note(self, name: str, node: dict[str, Any]) -> None:
        for condition in node.get("status", {}).get("conditions", []):
            key, status = (name, condition["type"]), condition["status"]
            if self._seen.get(key, ("", 0.0))[0] != status:
                self._seen[key] = status, time.monotonic()
