"""Readings that may fail or hang, made so that only they suffer."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

log = logging.getLogger(__name__)

_DEADLINE_SECONDS = 1.0


class Probe:
    """Readings of the host, made together in one thread; a good value stands until a better one comes."""

    def __init__(
        self, readings: Mapping[str, Callable[[], Mapping[str, Any]]], *, deadline_seconds: float = _DEADLINE_SECONDS
    ) -> None:
        self._readings = readings
        self._deadline_seconds = deadline_seconds
        self._pending: asyncio.Future[None] | None = None
        self._values: dict[str, Any] = {}
        self._faults: dict[str, str] = {}

    @property
    def hangs(self) -> bool:
        """Whether a reading has not come back."""
        return self._pending is not None and not self._pending.done()

    async def read(self) -> Mapping[str, Any]:
        """The values, read now if that takes no longer than the deadline; a reading that hangs is not started again."""
        if self.hangs:
            return self._values
        self._pending = asyncio.get_running_loop().run_in_executor(None, self._read_all)
        try:
            async with asyncio.timeout(self._deadline_seconds):
                await asyncio.shield(self._pending)
        except TimeoutError:
            names = ",".join(self._readings)
            log.error(
                "Host does not answer, keeping its last values", {"sensor": names, "seconds": self._deadline_seconds}
            )
        return self._values

    def _read_all(self) -> None:
        for name, reading in self._readings.items():
            try:
                self._values |= reading()
            except (OSError, ValueError, LookupError) as error:
                self._failed(name, f"{type(error).__name__}: {error}")
            else:
                if self._faults.pop(name, None):
                    log.info("Host can be read again", {"sensor": name})

    def _failed(self, name: str, fault: str) -> None:
        if self._faults.get(name) != fault:  # said once, not every second
            self._faults[name] = fault
            log.error("Unable to read the host, keeping its last values", {"sensor": name, "err": fault})
