"""The service manager that started us, in the protocol of sd_notify(3)."""

import logging
import os
import socket

log = logging.getLogger(__name__)


class Systemd:
    """Sends notifications to the service manager; without one, it does nothing."""

    def __init__(self, address: str = "", *, watchdog_seconds: float | None = None) -> None:
        self._address = address
        self.listens = bool(address)
        self.watchdog_seconds = watchdog_seconds  # after such a silence we are restarted

    @classmethod
    def from_environment(cls) -> "Systemd":
        """As the service manager left word for us; our children are not to find it."""
        address = os.environ.pop("NOTIFY_SOCKET", "")
        watchdog_usec, watched = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        is_for_us = watchdog_usec.isdecimal() and watched in {"", str(os.getpid())}
        return cls(address, watchdog_seconds=int(watchdog_usec) / 1e6 if is_for_us else None)

    def notify(self, *assignments: str) -> None:
        """Send `READY=1`, `STATUS=…` and the like, all at once; a service manager that is away misses it."""
        if not self.listens:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
                door.setblocking(False)  # a full mailbox must not hold up a heartbeat
                door.connect("\0" + self._address[1:] if self._address.startswith("@") else self._address)
                door.send("\n".join(assignments).encode())
        except OSError as error:
            log.debug("Unable to notify the service manager", {"err": error})
