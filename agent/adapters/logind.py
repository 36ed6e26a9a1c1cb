"""logind over the system bus: the signal of a shutdown, and a lock that delays it."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.ports import LogindRefused, NoLogind

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

_CALL_SECONDS = 10.0
_LOGIN = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
_SYSTEMD = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")
_BUS = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")
_SIGNAL = "PrepareForShutdown"
_MATCH = f"type='signal',sender='{_LOGIN[0]}',path='{_LOGIN[1]}',interface='{_LOGIN[2]}',member='{_SIGNAL}'"
_OVERRIDE = Path("/etc/systemd/logind.conf.d/99-kubelet.conf")  # where a kubelet writes it, too
_SIGHUP = 1


class Logind:
    """Connects to logind."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["BusSession"]:
        """Yield a connection. Raises NoLogind if there is no system bus that we may use."""
        # Imported here: 3 MiB that a daemon without graceful shutdown does not need.
        from dbus_fast import BusType  # noqa: PLC0415
        from dbus_fast.aio import MessageBus  # noqa: PLC0415
        from dbus_fast.errors import DBusFastError  # noqa: PLC0415

        try:
            bus = MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True, auth_timeout=_CALL_SECONDS)
            await bus.connect()
        except (OSError, EOFError, DBusFastError) as error:
            raise NoLogind(f"no system bus: {error}") from error
        # One task for the whole session: a caller that is cancelled must not cancel it for the others.
        end = asyncio.ensure_future(bus.wait_for_disconnect())  # type: ignore[no-untyped-call]
        session = BusSession(bus, end)
        try:
            yield session
        finally:
            session.release()
            end.cancel()
            bus.disconnect()


class BusSession:
    """A connection to logind. Requests raise NoLogind once the bus has closed it."""

    def __init__(self, bus: "MessageBus", end: asyncio.Future[None]) -> None:
        self._bus = bus
        self._end = end
        self._lock: int | None = None
        self._signals: asyncio.Queue[bool] = asyncio.Queue()

    async def listen(self) -> None:
        """Subscribe to the signals of shutdowns."""
        self._bus.add_message_handler(self._on_message)
        await self._call(_BUS, "AddMatch", "s", [_MATCH])

    async def next_change(self) -> bool:
        """Wait for the next signal, and return whether the machine is going down."""
        signal = asyncio.ensure_future(self._signals.get())
        awaited: set[asyncio.Future[Any]] = {signal, self._end}
        try:
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if signal.done():
                return signal.result()
            raise NoLogind("the system bus closed the connection")
        finally:
            signal.cancel()

    async def delay_seconds(self) -> float:
        """Return for how long logind lets a lock delay a shutdown."""
        where = (_LOGIN[0], _LOGIN[1], "org.freedesktop.DBus.Properties")
        reply = await self._call(where, "Get", "ss", [_LOGIN[2], "InhibitDelayMaxUSec"])
        return float(reply.body[0].value) / 1e6

    async def raise_delay(self, seconds: float) -> None:
        """Have logind wait longer, as a kubelet does. Raises LogindRefused if we are not allowed to."""
        try:
            await asyncio.to_thread(_write_override, seconds)
        except OSError as error:
            raise LogindRefused(f"{_OVERRIDE}: {error.strerror}") from error
        await self._call(_SYSTEMD, "KillUnit", "ssi", ["systemd-logind.service", "all", _SIGHUP])

    async def inhibit(self) -> None:
        """Delay the next shutdown until `release`. Raises LogindRefused if we are not allowed to."""
        what, who, why = "shutdown", "kubelet", "Kubelet needs time to handle node shutdown"
        reply = await self._call(_LOGIN, "Inhibit", "ssss", [what, who, why, "delay"])
        self.release()
        self._lock = reply.unix_fds[0]

    def release(self) -> None:
        """Let the machine go down."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _on_message(self, message: "Message") -> None:
        if message.member == _SIGNAL and message.interface == _LOGIN[2] and message.body:
            self._signals.put_nowait(bool(message.body[0]))

    async def _call(self, where: Sequence[str], member: str, signature: str, body: list[Any]) -> "Message":
        from dbus_fast import Message, MessageType  # noqa: PLC0415  as above
        from dbus_fast.errors import DBusFastError  # noqa: PLC0415

        destination, path, interface = where
        request = Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=body
        )
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                reply = await self._bus.call(request)
        except (OSError, EOFError, TimeoutError, DBusFastError) as error:
            raise NoLogind(f"{member}: {error or 'no answer in time'}") from error
        if reply is None or reply.message_type is MessageType.ERROR:
            message = reply.body[0] if reply and reply.body else "no answer"
            raise LogindRefused(f"{member}: {message}")
        return reply


def _write_override(seconds: float) -> None:
    _OVERRIDE.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    _OVERRIDE.write_text(f"# Kubelet logind override\n[Login]\nInhibitDelayMaxSec={seconds:.0f}\n")
