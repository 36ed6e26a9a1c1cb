"""What this process reports about itself on /metrics and /metrics/probes."""

import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import psutil

from agent.adapters.host import architecture
from agent.adapters.metrics.exposition import exposition
from agent.adapters.settings.feature_gates import FeatureGates
from agent.core.config import Config
from agent.core.kubelet_data.gates import GATES
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.metrics import Family, Gauge, Registry, Sample
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
_START_TIME = ("process_start_time_seconds", "Start time of the process since unix epoch in seconds.")

_this_process = cache(psutil.Process)  # it caches what does not change


@runtime_checkable
class Collector(Protocol):
    """Whatever counts or measures something."""

    def families(self) -> Iterable[Family]:
        """Return the metrics as they are now."""


class KubeletMetrics:
    """Serves the node's own metrics; nothing is computed before the first request."""

    def __init__(
        self,
        config: Config,
        *,
        metrics: Registry,
        pods: Callable[[], PodCounts],
        feature_gates: Mapping[str, bool],
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._pods = pods
        self._gates = FeatureGates(feature_gates)
        self._constant_text = b""

    async def metrics(self) -> bytes:
        """Return /metrics: first what changes, then what never does, which is formatted only once."""
        self._constant_text = self._constant_text or exposition(self._constants())
        families = (*self._metrics.families(), *_process(), *_pod_counts(self._pods()))
        return exposition(families) + self._constant_text

    async def probes(self) -> bytes:
        """Return /metrics/probes: no container is probed here."""
        return exposition(process_start_time())

    def _constants(self) -> Iterator[Family]:
        name = Gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", ("node",))
        name.set(self._config.node.node_name, value=1)
        cgroup = Gauge("kubelet_cgroup_version", "[ALPHA] cgroup version on the hosts.")
        is_v2 = Path(self._config.process.host.root, "sys/fs/cgroup/cgroup.controllers").exists()
        cgroup.set(value=2 if is_v2 else 1)
        build = Gauge("kubernetes_build_info", _BUILD, _BUILD_LABELS)
        major, minor, _ = KUBELET_VERSION.removeprefix("v").split(".")
        version, platform = self._config.node.kubelet_version, f"linux/{architecture()}"
        build.set("", "", "", "", version, "", major, minor, platform, value=1)
        features = Gauge(
            "kubernetes_feature_enabled",
            "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
            ("name", "stage"),
        )
        for feature, gate in GATES.items():
            features.set(feature, gate.stage, value=float(self._gates.enabled(feature)))
        for metric in (name, cgroup, build, features):
            yield metric.family()


def _process() -> Iterator[Family]:
    """Yield CPU, memory and file descriptors of this process, as all Prometheus clients name them."""
    process = _this_process()
    with process.oneshot():
        cpu, memory = process.cpu_times(), process.memory_info()
    descriptors, max_descriptors = process.num_fds(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for name, kind, text, value in (
        ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", sum(cpu[:2])),
        ("process_max_fds", "gauge", "Maximum number of open file descriptors.", max_descriptors),
        ("process_open_fds", "gauge", "Number of open file descriptors.", descriptors),
        ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", memory.rss),
        (_START_TIME[0], "gauge", _START_TIME[1], process.create_time()),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", memory.vms),
    ):
        yield Family(name, text, kind, [Sample("", {}, value)])


def process_start_time() -> list[Family]:
    """Return when this process began, which a kubelet also reports on /metrics/probes and /metrics/slis."""
    name, text = _START_TIME
    return [Family(name, f"[ALPHA] {text}", "gauge", [Sample("", {}, _this_process().create_time())])]


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
