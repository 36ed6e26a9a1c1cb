"""The command lines and config files that a real kubelet and fake-kubelet are both started with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One way to start a kubelet."""

    id: str
    flags: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    flags_only: bool = False  # no config file: kubelet has other defaults then
    by_hand: bool = False  # the Node is created by somebody else
    status: Mapping[str, Any] = field(default_factory=dict)  # of the Node that is created by somebody else
    restarted: bool = False  # the Node is there from an earlier start, before the machine was rebooted

    @property
    def finds_a_node(self) -> bool:
        """Whether the Node is there already when the kubelet starts."""
        return self.by_hand or self.restarted


HOST_IP, HOST_IP6 = "{host_ip}", "{host_ip6}"
"""Stand for addresses of this machine."""

RESERVED = {
    "kubeReserved": {"cpu": "100m", "memory": "256Mi", "ephemeral-storage": "1Gi"},
    "systemReserved": {"cpu": "150m", "memory": "300M", "ephemeral-storage": "1500M"},
}

CASES = (
    Case("config file, nothing set"),
    Case("flags only", flags_only=True),
    Case(
        "flags only with eviction-hard",
        flags_only=True,
        flags=["--eviction-hard=memory.available<200Mi,nodefs.available<7%"],
    ),
    Case("reservations in the config file", config=RESERVED),
    Case(
        "reservations as flags",
        flags=["--kube-reserved=cpu=500m,memory=1Gi", "--system-reserved=memory=0.5Gi,ephemeral-storage=2Gi"],
    ),
    Case("reservations as flags replace those of the file", config=RESERVED, flags=["--kube-reserved=cpu=250m"]),
    Case("reserved cpus", config={"reservedSystemCPUs": "0", "kubeReserved": {"cpu": "1", "memory": "1Gi"}}),
    Case("everything reserved", config={"systemReserved": {"cpu": "2", "ephemeral-storage": "10Gi"}}),
    Case("eviction-hard replaces the default", config={"evictionHard": {"memory.available": "5%"}}),
    Case(
        "eviction-hard merged with the default",
        config={"evictionHard": {"memory.available": "1Gi"}, "mergeDefaultEvictionSettings": True},
    ),
    Case(
        "eviction by odd percentages",
        config={"evictionHard": {"memory.available": "3.3%", "nodefs.available": "12.34%"}},
    ),
    Case("eviction switched off", config={"evictionHard": {"memory.available": "0%", "nodefs.available": "100%"}}),
    Case(
        "soft eviction does not reduce allocatable",
        config={
            "evictionSoft": {"memory.available": "1Gi", "nodefs.available": "15%"},
            "evictionSoftGracePeriod": {"memory.available": "1m", "nodefs.available": "1m"},
            "evictionMinimumReclaim": {"memory.available": "100Mi"},
        },
    ),
    Case("allocatable without eviction", flags=["--experimental-allocatable-ignore-eviction=true"]),
    Case("max-pods", flags=["--max-pods=29"]),
    Case("pods-per-core below max-pods", config={"podsPerCore": 10, "maxPods": 250}),
    Case("pods-per-core above max-pods", config={"podsPerCore": 200, "maxPods": 50}),
    Case("no local storage isolation", config={"localStorageCapacityIsolation": False}),
    Case(
        "labels and taints",
        flags=[
            "--node-labels=example.com/rack=r1,topology.kubernetes.io/zone=z1,empty",
            "--register-with-taints=example.com/a=b:NoSchedule,c:PreferNoSchedule",
        ],
    ),
    Case(
        "labels over the defaults",
        flags=["--node-labels=kubernetes.io/hostname=other,node.kubernetes.io/instance-type=m1"],
    ),
    Case(
        "taints in the config file", config={"registerWithTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}
    ),
    Case("provider id", flags=["--provider-id=kind://podman/kind/n1"]),
    Case("provider id in the config file", config={"providerID": "aws:///eu-1a/i-0"}),
    Case("no attach-detach", config={"enableControllerAttachDetach": False}),
    Case("node-ip", flags=[f"--node-ip={HOST_IP}"]),
    Case("node-ip of both families", flags=[f"--node-ip={HOST_IP},{HOST_IP6}"]),
    Case("node-ip of both families, IPv6 first", flags=[f"--node-ip={HOST_IP6},{HOST_IP}"]),
    Case("node-ip unspecified", flags=["--node-ip=0.0.0.0"]),
    Case("node-ip unspecified, IPv6", flags=["--node-ip=::"]),
    Case("node-ip that is not ours", flags=["--node-ip=203.0.113.77"]),
    Case("node-ip that is loopback", flags=["--node-ip=127.0.0.1"]),
    Case("node-ip that is no address", flags=["--node-ip=nonsense"]),
    Case("external cloud provider", flags=["--cloud-provider=external"]),
    Case("external cloud provider and node-ip", flags=["--cloud-provider=external", f"--node-ip={HOST_IP}"]),
    Case("external cloud provider and unspecified node-ip", flags=["--cloud-provider=external", "--node-ip=0.0.0.0"]),
    Case(
        "external cloud provider and both families",
        flags=["--cloud-provider=external", f"--node-ip={HOST_IP},{HOST_IP6}"],
    ),
    Case("external cloud provider and foreign node-ip", flags=["--cloud-provider=external", "--node-ip=203.0.113.77"]),
    Case("no registration, Node made by hand", flags=["--register-node=false"], by_hand=True),
    Case("no registration in the config file", config={"registerNode": False}, by_hand=True),
    Case("Node made by hand and registered", by_hand=True, flags=["--node-labels=example.com/ignored=1"]),
    Case(
        "no registration, Node of another boot",
        config={"registerNode": False},
        by_hand=True,
        status={"nodeInfo": {"bootID": "another"}},
    ),
    Case("Node of an earlier start", restarted=True, flags=["--node-labels=example.com/rack=r1"]),
    Case("no server", config={"enableServer": False}),
    Case("identity from other files", flags=["--machine-id-file=/no,/etc/hostname", "--boot-id-file=/etc/hostname"]),
    Case("a feature switched off", flags=["--feature-gates=ExtendWebSocketsToKubelet=false"]),
)
