"""What a fleet reports to Prometheus: so many series, however many nodes there are."""

from collections.abc import Callable, Iterator

from agent.core.fleet_view import AGE_LIMITS_SECONDS, STATES, FleetView
from agent.core.metrics import Family, Gauge


def fleet_families(view: Callable[[], FleetView]) -> Iterator[Family]:
    """Yield the metrics of a fleet as it is now."""
    now = view()
    nodes = Gauge("fake_kubelet_fleet_nodes", "Nodes of the fleet by state.", ("fleet", "state"))
    for state in STATES:
        nodes.set(now.name, state, value=now.states.get(state, 0))
    leases = Gauge(
        "fake_kubelet_fleet_leases",
        "Leases that were renewed less than this ago.",
        ("fleet", "younger"),
    )
    for limit in (*AGE_LIMITS_SECONDS, float("inf")):
        count = sum(age < limit for age in now.lease_ages)
        leases.set(now.name, "+Inf" if limit == float("inf") else f"{limit:g}", value=count)
    oldest = Gauge("fake_kubelet_fleet_oldest_lease_seconds", "Age of the lease renewed longest ago.", ("fleet",))
    oldest.set(now.name, value=now.oldest_seconds)
    pods = Gauge("fake_kubelet_fleet_pods", "Pods on the nodes of the fleet.", ("fleet",))
    pods.set(now.name, value=now.pods)
    for gauge in (nodes, leases, oldest, pods):
        yield gauge.family()
