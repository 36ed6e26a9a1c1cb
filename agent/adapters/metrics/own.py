"""What this node tells about itself on /metrics and /metrics/probes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from agent.adapters.host import architecture
from agent.adapters.metrics.exposition import exposition
from agent.adapters.metrics.process import process, started
from agent.adapters.settings.gates import Gates
from agent.core.config import Config
from agent.core.kubelet_data.gates import GATES
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.metrics import Family, Gauge, Registry
from agent.core.pods.info import PodCounts

_BUILD = (
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, "
    "build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running."
)
_BUILD_LABELS = (
    "build_date",
    "compiler",
    "git_commit",
    "git_tree_state",
    "git_version",
    "go_version",
    "major",
    "minor",
    "platform",
)


@runtime_checkable
class Measured(Protocol):
    """Whatever counts or measures something."""

    def families(self) -> Iterable[Family]:
        """The numbers as they are now."""


class OwnMetrics:
    """The pages of a node's own metrics; nothing is made before somebody asks."""

    def __init__(
        self,
        config: Config,
        *,
        metrics: Registry,
        pods: Callable[[], PodCounts],
        feature_gates: Mapping[str, bool],
    ) -> None:
        self._config, self._metrics, self._pods = config, metrics, pods
        self._gates = Gates(feature_gates)
        self._unchanging = b""

    async def metrics(self) -> bytes:
        """/metrics: first what changes, then what never does, which is written only once."""
        self._unchanging = self._unchanging or exposition(self._constants())
        return exposition(self._numbers()) + self._unchanging

    async def probes(self) -> bytes:
        """/metrics/probes: no container is probed here."""
        return exposition(started())

    def _numbers(self) -> Iterator[Family]:
        yield from self._metrics.families()
        yield from process()
        yield from _pod_counts(self._pods())

    def _constants(self) -> Iterator[Family]:
        name = Gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", ("node",))
        name.set(self._config.node_name, value=1)
        cgroup = Gauge("kubelet_cgroup_version", "[ALPHA] cgroup version on the hosts.")
        is_v2 = Path(self._config.host_root, "sys/fs/cgroup/cgroup.controllers").exists()
        cgroup.set(value=2 if is_v2 else 1)
        build = Gauge("kubernetes_build_info", _BUILD, _BUILD_LABELS)
        major, minor, _ = KUBELET_VERSION.removeprefix("v").split(".")
        version, platform = self._config.kubelet_version, f"linux/{architecture()}"
        build.set("", "", "", "", version, "", major, minor, platform, value=1)
        features = Gauge(
            "kubernetes_feature_enabled",
            "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
            ("name", "stage"),
        )
        for gate, known in GATES.items():
            features.set(gate, known.stage, value=float(self._gates.enabled(gate)))
        for metric in (name, cgroup, build, features):
            yield metric.family()


def _pod_counts(counts: PodCounts) -> Iterator[Family]:
    running = Gauge("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox")
    containers = Gauge(
        "kubelet_running_containers", "[ALPHA] Number of containers currently running", ("container_state",)
    )
    running.set(value=counts.running_pods)
    for state, label in (("running", "running"), ("terminated", "exited"), ("waiting", "created")):
        if count := counts.containers[state]:
            containers.set(label, value=count)
    yield running.family()
    yield containers.family()
