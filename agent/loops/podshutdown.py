"""End all pods before the node goes down."""

import logging
from collections.abc import Sequence

from agent.core.pods.shutdown import groups, parting
from agent.core.shutdown import GracePeriod
from agent.loops.pods import PodLoop
from agent.ports import Clock

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2


async def end_in_groups(pods: PodLoop, *, periods: Sequence[GracePeriod], clock: Clock) -> None:
    """End the pods of one priority after those of another, each group within its time.

    Those that are ending already are waited for, too, as a kubelet's active pods.
    """
    for group in groups([*pods.store.running(), *pods.store.terminating()], periods):
        log.info("Shutdown manager killing pods", {"pods": len(group.pods), "shutdownGracePeriod": group.seconds})
        for pod in group.pods:
            pods.kill(pod.uid, parting(pod, group.seconds, clock.now()))
        deadline, uids = clock.monotonic() + group.seconds, {pod.uid for pod in group.pods}
        while uids & pods.store.killed() and clock.monotonic() < deadline:
            await clock.sleep(_LOOK_SECONDS)
