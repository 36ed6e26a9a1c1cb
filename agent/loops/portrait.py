"""The node as its loops know it, for people to look at."""

from agent.controllers.state import NodeState
from agent.core.portrait import Portrait, Trouble, conditions, shares
from agent.machinery.health import HealthRegistry, LeaseHealth
from agent.ports import Clock


def portrait(state: NodeState, *, lease: LeaseHealth, health: HealthRegistry, clock: Clock) -> Portrait:
    """The node as it is now."""
    config, status = state.config, (state.node or {}).get("status", {})
    failure = health.last_failure()
    return Portrait(
        node_name=config.node_name,
        version=config.kubelet_version,
        node=state.node,
        conditions=conditions(config, status, state.pressure.signals),
        shares=shares(status),
        renewals=lease.history(),
        renew_seconds=lease.period_seconds,
        lease_seconds=lease.deadline_seconds,
        lease_age_seconds=lease.renewal_age_seconds,
        missed=lease.missed,
        faults=health.faults(),
        last_trouble=failure and Trouble(clock.monotonic() - failure.at_seconds, failure.loop, failure.reason),
    )
