"""Tell the cluster that the node goes down, before it does."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from agent.controllers.pods import PodController
from agent.controllers.state import NodeState
from agent.core.events import SHUTDOWN_CANCELLED, SHUTDOWN_DETECTED
from agent.core.metrics import Gauge, Registry
from agent.core.nodestatus import find_condition
from agent.core.shutdown import SHUTTING_DOWN, GracePeriod, kill_for_shutdown, priority_groups, requested_seconds
from agent.core.times import format_seconds
from agent.klog import V1
from agent.machinery.isolation import Isolation
from agent.ports import Clock, LogindApi, LogindRefused, LogindSession, NoLogind, Recorder

log = logging.getLogger(__name__)

_SUBJECT = "shutdown"
_REPORT_SECONDS = 3.0  # an API server that does not answer does not keep a machine from going down
_RECONNECT_SECONDS = 1.0
_POLL_SECONDS = 0.2
_RELOAD_SECONDS = (0.0, 0.1, 0.2, 0.4, 0.8)  # as kubelet: logind reads its settings in its own time


class GracefulShutdown:
    """Reports a node as not ready before it goes down, and ends its pods."""

    def __init__(
        self,
        *,
        state: NodeState,
        events: Recorder,
        clock: Clock,
        end_pods: Callable[[], Awaitable[None]],
        isolation: Isolation,
        metrics: Registry,
    ) -> None:
        self._state = state
        self._end_pods = end_pods
        self._events = events
        self._clock = clock
        self._isolation = isolation
        self._began, self._ended = (
            metrics.register(
                Gauge(
                    f"kubelet_graceful_shutdown_{word}_time_seconds",
                    f"[ALPHA] Last graceful shutdown {word} time since unix epoch in seconds",
                )
            )
            for word in ("start", "end")
        )

    async def begin(self) -> None:
        """Become not ready and meanwhile have the pods end; return when that is done, or when time is up."""
        self._began.set(value=self._clock.now().timestamp())
        self._events.record(SHUTDOWN_DETECTED)
        self._state.block(_SUBJECT, SHUTTING_DOWN)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wait_until_reported(), name="shutdown-report")
            with self._isolation.attempt("pods"):  # the node is reported as not ready all the same
                await self._end_pods()
        self._ended.set(value=self._clock.now().timestamp())

    def cancel(self) -> None:
        """Be ready again."""
        self._events.record(SHUTDOWN_CANCELLED)
        self._state.clear(_SUBJECT)

    async def _wait_until_reported(self) -> None:
        with self._isolation.attempt("report"):
            deadline = self._clock.monotonic() + _REPORT_SECONDS
            while not self._is_reported():
                if (left_seconds := deadline - self._clock.monotonic()) <= 0:
                    log.error("The shutdown was not reported to the API server in time", {"seconds": _REPORT_SECONDS})
                    return
                await self._state.wait_for_update(left_seconds)
            log.info("The API server shows that the node is shutting down")

    def _is_reported(self) -> bool:
        node = self._state.node()
        ready = find_condition(node.get("status", {}), "Ready") if node else None
        return ready is not None and ready["status"] == "False" and SHUTTING_DOWN in str(ready.get("message"))


class ShutdownManager:
    """Delays a shutdown of the machine until the node is reported as not ready and its pods have ended."""

    def __init__(
        self, *, periods: Sequence[GracePeriod], logind: LogindApi, shutdown: GracefulShutdown, clock: Clock
    ) -> None:
        self._seconds = requested_seconds(periods)
        self._logind = logind
        self._shutdown = shutdown
        self._clock = clock
        self._listens = False  # whether logind announces shutdowns
        self._begun = False

    async def run(self) -> None:
        """Listen to logind forever; where there is none from the start, the end of the process is all we will hear."""
        while True:
            try:
                async with self._logind.connected() as session:
                    await self._follow(session)
            except (NoLogind, LogindRefused) as error:
                if not self._listens:
                    log.warning("No logind here, the end of this process is taken for the node's", {"err": error})
                    return
                log.error("Unable to watch the node for shutdown events", {"err": error})
            await self._clock.sleep(_RECONNECT_SECONDS)
            log.log(V1, "Restarting watch for node shutdown events")

    async def process_ends(self) -> None:
        """Take the end of the process for a shutdown of the node, unless logind would announce one."""
        if not self._listens and not self._begun:
            await self._begin()

    async def _follow(self, session: LogindSession) -> None:
        await session.listen()
        await self._ask_for_time(session)
        self._listens = True
        await self._hold(session)
        while True:
            is_going_down = await session.next_change()
            log.log(V1, "Shutdown manager detected new shutdown event", {"event": is_going_down})
            if is_going_down:
                await self._begin()
                session.release()
                log.log(V1, "Shutdown manager completed processing shutdown event, node will shutdown shortly")
            else:
                self._begun = False
                self._shutdown.cancel()
                await self._hold(session)

    async def _begin(self) -> None:
        self._begun = True
        log.info("The node is shutting down")
        await self._shutdown.begin()

    async def _hold(self, session: LogindSession) -> None:
        """Take the inhibitor lock; without it, logind announces a shutdown but does not wait for the report."""
        try:
            await session.inhibit()
        except LogindRefused as error:
            log.error("Unable to hold a shutdown of the machine back", {"err": error, "hint": "polkit decides"})
        else:
            log.info("A shutdown of the machine waits for us", {"shutdownGracePeriod": format_seconds(self._seconds)})

    async def _ask_for_time(self, session: LogindSession) -> None:
        """Have logind wait as long as the settings say; where it does not, less time has to do."""
        if await session.delay_seconds() >= self._seconds:
            return
        try:
            await session.raise_delay(self._seconds)
            await self._until_raised(session)
        except LogindRefused as error:
            allowed = {"shutdownGracePeriod": self._seconds, "InhibitDelayMaxSec": await session.delay_seconds()}
            log.error(
                "A shutdown waits for less time than the settings say; set InhibitDelayMaxSec in logind.conf",
                {"err": error, **allowed},
            )

    async def _until_raised(self, session: LogindSession) -> None:
        for pause_seconds in _RELOAD_SECONDS:
            await self._clock.sleep(pause_seconds)
            if await session.delay_seconds() >= self._seconds:
                return
        raise LogindRefused("logind did not take the new value over")


async def kill_pods_by_priority(pods: PodController, *, periods: Sequence[GracePeriod], clock: Clock) -> None:
    """Kill the pods group by group, lowest priority first, and wait for each group within its grace period.

    This includes pods that are terminating already, as kubelet's active pods do.
    """
    for group in priority_groups([*pods.store.running(), *pods.store.terminating()], periods):
        log.info("Shutdown manager killing pods", {"pods": len(group.pods), "shutdownGracePeriod": group.seconds})
        for pod in group.pods:
            pods.kill(pod.uid, kill_for_shutdown(pod, group.seconds, clock.now()))
        deadline, uids = clock.monotonic() + group.seconds, {pod.uid for pod in group.pods}
        while uids & pods.store.killed() and clock.monotonic() < deadline:
            await clock.sleep(_POLL_SECONDS)
