"""Checks of numbers and durations."""

from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation.fault import INVALID, Faults
from agent.core.times import parse_seconds

_NEGATIVE = "must not be a negative number"

# field, flag, minimum, maximum, message
_RANGES: tuple[tuple[str, str, int, int | None, str], ...] = (
    ("eventBurst", "event-burst", 0, None, _NEGATIVE),
    ("eventRecordQPS", "event-qps", 0, None, _NEGATIVE),
    ("healthzPort", "healthz-port", 0, 65535, "must be between 1 and 65535, inclusive"),
    ("imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100, "must be between 0 and 100, inclusive"),
    ("imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100, "must be between 0 and 100, inclusive"),
    ("iptablesDropBit", "iptables-drop-bit", 0, 31, "must be between 0 and 31, inclusive"),
    ("iptablesMasqueradeBit", "iptables-masquerade-bit", 0, 31, "must be between 0 and 31, inclusive"),
    ("kubeAPIBurst", "kube-api-burst", 0, None, _NEGATIVE),
    ("kubeAPIQPS", "kube-api-qps", 0, None, _NEGATIVE),
    ("nodeStatusMaxImages", "node-status-max-images", -1, None, "must be -1 or greater"),
    ("maxOpenFiles", "max-open-files", 0, None, _NEGATIVE),
    ("maxPods", "max-pods", 0, None, _NEGATIVE),
    ("oomScoreAdj", "oom-score-adj", -1000, 1000, "must be between -1000 and 1000, inclusive"),
    ("podsPerCore", "pods-per-core", 0, None, _NEGATIVE),
    ("port", "port", 1, 65535, "must be between 1 and 65535, inclusive"),
    ("readOnlyPort", "read-only-port", 0, 65535, "must be between 0 and 65535, inclusive"),
    ("registryBurst", "registry-burst", 0, None, _NEGATIVE),
    ("registryPullQPS", "registry-qps", 0, None, _NEGATIVE),
)


def lease(document: Document, _: FeatureGates) -> Faults:
    """Check the lease, and cgroups that need each other."""
    if document["nodeLeaseDurationSeconds"] <= 0:
        yield f"{INVALID}nodeLeaseDurationSeconds must be greater than 0"
    if document["systemCgroups"] and not document["cgroupRoot"]:
        yield (
            f"{INVALID}systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified"
        )


def ranges(document: Document, _: FeatureGates) -> Faults:
    """Check numbers with a minimum or a maximum."""
    for name, flag, minimum, maximum, message in _RANGES:
        value = document[name]
        if value < minimum or (maximum is not None and value > maximum):
            yield f"{INVALID}{name} (--{flag}) {value} {message}"


def cfs_quota(document: Document, gates: FeatureGates) -> Faults:
    """Check the period of CPU quotas, which needs its feature gate."""
    period = document["cpuCFSQuotaPeriod"]
    prefix = f"{INVALID}cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {{{period}}}"
    if not gates.enabled("CustomCPUCFSQuotaPeriod"):
        if period != "100ms":
            yield f"{prefix} requires feature gate CustomCPUCFSQuotaPeriod"
    elif not 0.001 <= parse_seconds(period) <= 1:
        yield f"{prefix} must be between 1ms and 1sec, inclusive"


def image_gc(document: Document, gates: FeatureGates) -> Faults:
    """Check when images are collected."""
    low, high = document["imageGCLowThresholdPercent"], document["imageGCHighThresholdPercent"]
    if low >= high:
        yield (
            f"{INVALID}imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than "
            f"imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        )
    minimum, maximum = (parse_seconds(document[name]) for name in ("imageMinimumGCAge", "imageMaximumGCAge"))
    if maximum != 0 and not gates.enabled("ImageMaximumGCAge"):
        yield f"{INVALID}ImageMaximumGCAge feature gate is required for Kubelet configuration option imageMaximumGCAge"
    for name, age in (("imageMinimumGCAge", minimum), ("imageMaximumGCAge", maximum)):
        if age < 0:
            yield f"{INVALID}{name} {document[name]} must not be negative"
    if 0 < maximum <= minimum:
        yield (
            f"{INVALID}imageMaximumGCAge {document['imageMaximumGCAge']} must be greater than "
            f"imageMinimumGCAge {document['imageMinimumGCAge']}"
        )


def image_pulls(document: Document, _: FeatureGates) -> Faults:
    """Check how many images are pulled at a time."""
    pulls = document["maxParallelImagePulls"]
    if pulls is not None and pulls < 1:
        yield f"{INVALID}maxParallelImagePulls {pulls} must be a positive number"
    if pulls is not None and pulls > 1 and document["serializeImagePulls"]:
        yield (
            f"{INVALID}maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls "
            "(--serialize-image-pulls) is set to false"
        )


def certificates(document: Document, gates: FeatureGates) -> Faults:
    """Check fields that need a feature gate, or are removed."""
    if document["serverTLSBootstrap"] and not gates.enabled("RotateKubeletServerCertificate"):
        yield f"{INVALID}serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate"
    if document["runOnce"]:
        yield f"{INVALID}runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"


def container_logs(document: Document, _: FeatureGates) -> Faults:
    """Check how container logs are rotated."""
    if document["containerLogMaxWorkers"] < 1:
        yield f"{INVALID}containerLogMaxWorkers must be greater than or equal to 1"
    if parse_seconds(document["containerLogMonitorInterval"]) < 3:
        yield (f"{INVALID}containerLogMonitorInterval must be a positive time duration greater than or equal to 3s")
    if document["containerLogMaxFiles"] <= 1:
        yield f"{INVALID}containerLogMaxFiles must be greater than 1"
