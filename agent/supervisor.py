"""One supervisor owns all tasks, and the signals that end or wake them."""

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from agent.core.errors import ConfigError
from agent.machinery.runner import Runnable
from agent.ports import StartError

log = logging.getLogger(__name__)

DRAIN_SECONDS = 3.0


async def supervise(
    tasks: Sequence[Runnable],
    stop: asyncio.Event,
    *,
    on_stop: Callable[[], Awaitable[None]] | None = None,
    on_stop_seconds: float = DRAIN_SECONDS,
    lasting: Sequence[Runnable] = (),
    drain: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run `tasks` until `stop` is set and `on_stop` has returned, and the lasting ones until `drain` has returned, too.

    If one fails, all are cancelled and its error is raised; machinery/isolation.py keeps unexpected errors from that.
    """
    with _unwrapped_start_error():
        async with asyncio.TaskGroup() as outer:
            until_drained = [outer.create_task(task.run(), name=_name(task)) for task in lasting]
            async with asyncio.TaskGroup() as inner:
                until_stopped = [inner.create_task(task.run(), name=_name(task)) for task in tasks]
                await stop.wait()
                if on_stop:
                    await _within(on_stop, on_stop_seconds)
                for running in until_stopped:
                    running.cancel()
            if drain:
                await _within(drain, DRAIN_SECONDS)
            for running in until_drained:
                running.cancel()


def _name(task: Runnable) -> str:
    return str(getattr(task, "name", type(task).__name__))


@contextmanager
def _unwrapped_start_error() -> Iterator[None]:
    """Raise the StartError of a task without its groups: it is one line for a person."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException | None = group.subgroup(StartError)
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if error is not None:
            raise error from None
        raise


async def _within(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await work()
    except TimeoutError:
        log.error("Stopping takes too long, ending without the rest", {"seconds": seconds})


def stop_on_signals(stop: asyncio.Event, *, within_seconds: float) -> None:
    """Have SIGTERM and SIGINT end us, at the latest after this time; a second one ends us at once."""

    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)  # asked twice: no more patience
        stop.set()
        # Whatever hangs then, a thread on a dead disk or a dead resolver, is left behind.
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, within_seconds)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal)


def reload_on_signal(
    reload: asyncio.Event,
    reread_logging: Callable[[], None],
    announced: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Have SIGHUP wake whoever waits for `reload`, and the log settings read again."""

    def on_signal() -> None:
        log.info("Reloading credentials and log settings")
        with announced():
            reload.set()
            try:
                reread_logging()
            except (ConfigError, OSError) as error:
                log.error("Unable to reload log settings, keeping those in use", {"err": error})

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_signal)
