"""Kill all pods before the node shuts down."""

import logging
from collections.abc import Sequence

from agent.core.pods.shutdown import kill_for_shutdown, priority_groups
from agent.core.shutdown import GracePeriod
from agent.loops.pods import PodLoop
from agent.ports import Clock

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2


async def kill_pods_by_priority(pods: PodLoop, *, periods: Sequence[GracePeriod], clock: Clock) -> None:
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
