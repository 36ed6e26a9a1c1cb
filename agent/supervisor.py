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

LAST_WORDS_SECONDS = 3.0


async def supervise(
    loops: Sequence[Runnable],
    stop: asyncio.Event,
    *,
    parting: Callable[[], Awaitable[None]] | None = None,
    parting_seconds: float = LAST_WORDS_SECONDS,
    lasting: Sequence[Runnable] = (),
    last_words: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run all loops until `stop` and what is done at parting, lasting ones until the last words.

    If one fails, all stop and the error surfaces: machinery/isolation.py keeps what nobody expected from coming so far.
    """
    with _told_plainly():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(loop.run(), name=_name(loop)) for loop in lasting]
            async with asyncio.TaskGroup() as passing:
                mortal = [passing.create_task(loop.run(), name=_name(loop)) for loop in loops if loop not in lasting]
                await stop.wait()
                if parting:
                    await _in_time(parting, parting_seconds)
                for task in mortal:
                    task.cancel()
            if last_words:
                await _in_time(last_words, LAST_WORDS_SECONDS)
            for task in tasks:
                task.cancel()


def _name(loop: Runnable) -> str:
    return str(getattr(loop, "name", type(loop).__name__))


@contextmanager
def _told_plainly() -> Iterator[None]:
    """A StartError of a task surfaces as itself: it is one line for a person, not a tree of groups."""
    try:
        yield
    except BaseExceptionGroup as group:
        found: BaseException | None = group.subgroup(StartError)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        if found is not None:
            raise found from None
        raise


async def _in_time(last_words: Callable[[], Awaitable[None]], seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await last_words()
    except TimeoutError:
        log.error("Last words were not heard in time", {"seconds": seconds})


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
