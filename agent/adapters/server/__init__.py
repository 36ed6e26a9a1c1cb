"""What this node serves: health for its own machine, the kubelet's API for the cluster."""

from agent.adapters.server.health import HealthServer

__all__ = ["HealthServer"]
