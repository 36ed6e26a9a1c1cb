"""Nodes as autoscalers create them for KWOK, with what they write there, key by key."""

from typing import Any

KWOK, KWOK_VALUE = "kwok.x-k8s.io/node", "fake"
METRICS_PATH = "metrics.k8s.io/resource-metrics-path"
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


def karpenter_node(name: str) -> dict[str, Any]:
    """A Node of Karpenter's KWOK provider: its hostname label has the name of the NodeClaim."""
    amounts = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "20G", "pods": "64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": "default-x7k2p",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "arm64",
                "node.kubernetes.io/instance-type": "m-8x-arm64-linux",
                "topology.kubernetes.io/zone": "test-zone-b",
                "karpenter.sh/capacity-type": "spot",
                "karpenter.sh/nodepool": "default",
                "kwok-partition": "a",
                KWOK: KWOK_VALUE,
            },
            "annotations": {KWOK: KWOK_VALUE},
        },
        "spec": {"providerID": f"kwok://{name}", "taints": [UNREGISTERED]},
        "status": {"capacity": amounts, "allocatable": {**amounts, "cpu": "7900m"}, "phase": "Pending"},
    }


def cluster_autoscaler_node(name: str) -> dict[str, Any]:
    """A Node of cluster-autoscaler's KWOK provider: it has the annotation alone."""
    amounts = {"cpu": "12", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {
                "cluster-autoscaler.kwok.nodegroup/name": "pool",
                KWOK: KWOK_VALUE,
                METRICS_PATH: f"/metrics/nodes/{name}/metrics/resource",
            },
        },
        "spec": {"providerID": f"kwok:{name}"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
