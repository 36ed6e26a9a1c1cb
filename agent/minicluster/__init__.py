"""The embedded cluster for `demo` and for tests: a Kubernetes API server in memory."""

from agent.minicluster.cluster import MiniCluster
from agent.minicluster.object_store import ObjectStore

__all__ = ["MiniCluster", "ObjectStore"]
