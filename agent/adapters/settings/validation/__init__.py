"""The checks of a KubeletConfiguration, with kubelet's messages and in its order."""

from collections.abc import Callable

from agent.adapters.settings.feature_gates import FeatureGates, aggregate
from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation import logs, numbers, policies, reservations
from agent.adapters.settings.validation.fault import Faults
from agent.core.errors import ConfigError

_RULES: tuple[Callable[[Document, FeatureGates], Faults], ...] = (
    numbers.lease,
    numbers.ranges,
    numbers.cfs_quota,
    numbers.image_gc,
    numbers.image_pulls,
    numbers.certificates,
    policies.taints,
    policies.topology_manager,
    policies.graceful_shutdown,
    policies.memory_swap,
    policies.crash_loop,
    reservations.enforcements,
    policies.hairpin_mode,
    policies.image_credentials,
    reservations.reserved_cpus,
    reservations.reserved_memory,
    reservations.user_namespaces,
    logs.hidden_metrics,
    logs.tracing,
    policies.memory_qos,
    logs.log_query,
    numbers.container_logs,
    logs.pod_logs,
)


def check_configuration(document: Document, gates: FeatureGates) -> None:
    """Raise ConfigError with every fault of the document."""
    try:
        gates.check()
    except ConfigError as error:
        raise ConfigError(f"failed to set feature gates from initial flags-based config: {error}") from error
    if faults := list(logs.logging(document["logging"], gates)):
        raise ConfigError(f"initialize logging: {aggregate(faults)}")
    if faults := [fault for rule in _RULES for fault in rule(document, gates)]:
        raise ConfigError(f"failed to validate kubelet configuration, error: {aggregate(faults)}")
