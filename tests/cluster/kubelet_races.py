"""Races inside a real kubelet: what it does one way or the other by chance, each with its reason.

A comparison with a kubelet takes from here what it leaves out, and how it stays clear of the rest. Nothing of it is
about fake-kubelet: what that may do in another way is in the lists of allowed differences beside the comparisons.
The paths are regular expressions for whole field paths, as in those lists.
"""

from typing import NamedTuple

import psutil


class Race(NamedTuple):
    """What a comparison leaves out."""

    path: str
    reason: str


# --- left out of the comparison -------------------------------------------------------------------------------------

# of a Node that is there before the kubelet starts
FOUND_NODE = (
    Race(
        r"events\.Node(Not)?Ready(\..*)?",
        "told or not, by whether its CSINode is there before its first status: an initialisation with retries of its "
        "own makes the one, a timer the other",
    ),
    Race(
        r"order of conditions(\..*)?",
        "it appends those that are missing; if it is slow, the node-lifecycle controller has put its own there first, "
        "in another order",
    ),
)

# of the events about a pod
POD_EVENTS = (
    Race(r"events\.\d+\.count", "two rounds of the pod's worker may see one deadline pass: it is told once or twice"),
)
POD_EVENT_REASONS = {
    "Pulling": "an image that another pod has brought in the meantime is not pulled",
    "Unhealthy": "told of a probe that is being made at the moment when the pod ends",
}
SAME_EITHER_WAY = {"Pulled": "says how long it took, or that the image was there, by which of two pods came first"}

# The cores in use (usageNanoCores) are those between its last two samples, and two timers take samples: cAdvisor's
# housekeeping and the eviction manager. One may follow the other at once, so that nobody outside sees all of them.

# The birthday of the root cgroup is not before the boot, in whole minutes: now less the whole seconds since the boot,
# so that a boot in the last second of a minute is in that minute or the next, by the moment at which it starts.
BOOT_MINUTE_SECONDS = 60 if psutil.boot_time() % 60 >= 59 else 0

# --- kept from happening --------------------------------------------------------------------------------------------

# The broadcaster of its events drops what comes while 25 wait (apimachinery watch.NewBroadcaster, ActionOrDrop): pods
# are created and deleted a few at a time, three events each.
PODS_AT_ONCE = 8
# By default it pulls 5 images a second and fails the pulls beyond that, which pods created together may be.
UNLIMITED_PULLS = {"registryPullQPS": 0}
# Pods that come together are admitted in any order: one that is judged by the others comes after them (`is_late`).

# Its events have a queue of their own. They leave it in order: the one about a cordon, which is told at the next round
# of the status, comes after all that was told before. The rounds are short for this, reports as rare as by default. A
# round is also how long a request may take: of one that was given up, but got through, no event is told.
LAST_EVENT = "NodeNotSchedulable"
SHORT_ROUNDS = {"nodeStatusUpdateFrequency": "4s", "nodeStatusReportFrequency": "5m"}
