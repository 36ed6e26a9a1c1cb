"""The node as its loops know it, for people to look at."""

from agent.core.config import Config
from agent.core.portrait import Portrait, Trouble, conditions, shares
from agent.loops.observe import Observer
from agent.loops.ownnode import OwnNode
from agent.loops.pulse import Pulse
from agent.ports import Clock


def portrait(config: Config, *, own: OwnNode, observer: Observer, pulse: Pulse, clock: Clock) -> Portrait:
    """The node as it is now."""
    status = (own.node or {}).get("status", {})
    failure = pulse.last_failure()
    return Portrait(
        node_name=config.node_name,
        version=config.kubelet_version,
        node=own.node,
        conditions=conditions(config, status, observer.signals),
        shares=shares(status),
        renewals=pulse.lease.history(),
        renew_seconds=pulse.lease.period_seconds,
        lease_seconds=pulse.lease.deadline_seconds,
        lease_age_seconds=pulse.lease.renewal_age_seconds,
        missed=pulse.lease.missed,
        faults=pulse.faults(),
        last_trouble=failure and Trouble(clock.monotonic() - failure.at_seconds, failure.loop, failure.reason),
    )
