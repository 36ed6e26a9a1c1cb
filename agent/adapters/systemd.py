"""The service manager that started us, notified by the protocol of sd_notify(3)."""

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
        """Read and remove the variables that the service manager set, so that no child process gets them."""
        address = os.environ.pop("NOTIFY_SOCKET", "")
        watchdog_usec, watchdog_pid = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
        is_for_us = watchdog_usec.isdecimal() and watchdog_pid in {"", str(os.getpid())}
        return cls(address, watchdog_seconds=int(watchdog_usec) / 1e6 if is_for_us else None)

    def notify(self, *assignments: str) -> None:
        """Send `READY=1`, `STATUS=…` and the like, all at once; a service manager that is away misses it."""
        if not self.listens:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
                connection.setblocking(False)  # a full queue must not delay a heartbeat
                connection.connect("\0" + self._address[1:] if self._address.startswith("@") else self._address)
                connection.send("\n".join(assignments).encode())
        except OSError as error:
            log.debug("Unable to notify the service manager", {"err": error})
