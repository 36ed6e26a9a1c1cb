"""The resources the embedded cluster serves, one subject per module."""

from agent.minicluster.kinds import csinode, csr, event, lease, namespace, node, pod, review

RESOURCES = (
    namespace.NAMESPACES,
    node.NODES,
    pod.PODS,
    event.EVENTS,
    event.NEW_EVENTS,
    lease.LEASES,
    csinode.CSINODES,
    csr.SIGNING_REQUESTS,
    *review.REVIEWS,
)

__all__ = ["RESOURCES"]
