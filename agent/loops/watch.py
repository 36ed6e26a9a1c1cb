"""Keep a copy of objects up to date: list once, then watch, and go on after every interruption."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Protocol

from agent.core.model import Object
from agent.core.tally import Counter
from agent.loops.retry import following, watching
from agent.loops.weather import Weather
from agent.machinery.health import UNHEARD, Beat
from agent.machinery.isolation import Isolation, UnexpectedErrors
from agent.ports import ApiError, Change, Clock, Expired, Unavailable, WatchApi

log = logging.getLogger(__name__)

_LEAST_SECONDS = 300  # as client-go: a watch is asked for 5 to 10 minutes, so that not all end at once
_STEADY_SECONDS = 10.0  # a watch that lived for so long was no failure, however it ended
_FIRST_PAUSE_SECONDS = 0.8
_LONGEST_SILENCE_SECONDS = 30.0


class Copy(Protocol):
    """Where the objects are kept."""

    def reset(self, objects: Sequence[Object], version: str) -> None:
        """All objects at a version; whatever else was known is no more."""

    def put(self, obj: Object, /) -> None:
        """An object as it is now."""

    def remove(self, obj: Object, /) -> None:
        """An object that was deleted."""


class WatchLoop:
    """Lists and watches one selection of objects, as client-go's reflector does."""

    def __init__(
        self,
        *,
        kind: str,
        source: WatchApi,
        copy: Copy,
        clock: Clock,
        weather: Weather,
        is_scout: bool = True,
        beat: Beat = UNHEARD,
        isolation: Isolation | None = None,
    ) -> None:
        self._kind = kind
        self._retrying = watching if is_scout else following
        self._source = source
        self._copy = copy
        self._clock = clock
        self._weather = weather
        self._beat = beat
        self._isolation = isolation or UnexpectedErrors("", clock).isolation("watch")
        self._version: str | None = None
        self._fails_since: float | None = None
        self._tell_at = 0.0
        self.restarts = Counter(
            "fake_kubelet_watch_restarts_total", "Watches that failed and were opened again.", ("type",)
        )

    async def run(self) -> None:
        """Follow forever; each round ends with a watch that was good for a while."""
        while True:
            async for attempt in self._retrying(self._weather, self._failed):
                with attempt:
                    await self.sync()

    async def sync(self) -> None:
        """List where that is needed, then watch until the server ends it; a watch that was short raises an error."""
        if self._version is None:
            objects, version = await self._source.list()
            self._copy.reset(objects, version)
            self._version = version
            self._got_through()
        began = self._clock.monotonic()
        try:
            await self._follow(self._version)
        except ApiError as error:
            is_short = self._clock.monotonic() - began < _STEADY_SECONDS
            if is_short or isinstance(error, Expired):
                self._version = None  # it may be why the watch failed
            if is_short:
                raise
            # All nodes may have lost it at the same moment: none of them comes back at once.
            self._failed(error, pause := self._weather.spread(_FIRST_PAUSE_SECONDS, 1.0))
            await self._weather.wait_out(pause)
        else:
            if self._clock.monotonic() - began < 1.0:
                raise Unavailable("the watch ended as soon as it began")

    async def _follow(self, version: str) -> None:
        seconds = round(self._weather.spread(_LEAST_SECONDS, 1.0))
        async with aclosing(self._source.watch(version, seconds=seconds)) as changes:
            async for change in changes:
                self._apply(change)

    def _apply(self, change: Change) -> None:
        """Pass a change on; an object that cannot be applied holds up neither the watch nor other objects."""
        if change.kind == "OPENED":
            self._beat.settled()
            self._got_through()
            return
        metadata = change.object["metadata"]
        with self._isolation.attempt(object=metadata.get("name"), type=self._kind):
            if change.kind in {"ADDED", "MODIFIED"}:
                self._copy.put(change.object)
            elif change.kind == "DELETED":
                self._copy.remove(change.object)
        self._version = metadata["resourceVersion"]

    def _got_through(self) -> None:
        if self._fails_since is not None:
            self._fails_since = None
            self._weather.improved()

    def _failed(self, error: ApiError, _: float) -> None:
        now = self._clock.monotonic()
        if self._fails_since is None:
            self._fails_since = self._tell_at = now
        self._beat.failed(error)
        self.restarts.add(self._kind)
        if now >= self._tell_at:  # not each time: a scout would drown all other lines
            self._tell_at = now + min(max(_FIRST_PAUSE_SECONDS, now - self._fails_since), _LONGEST_SILENCE_SECONDS)
            log.error("Failed to watch", {"err": error, "type": self._kind})
