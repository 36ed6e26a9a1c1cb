"""Checks of enumerated fields, and of fields that depend on each other."""

from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation.fault import INVALID, Faults
from agent.core.labels import label_value_faults, qualified_name_faults
from agent.core.times import parse_seconds
from agent.klog import quoted

_TOPOLOGY = ("none", "best-effort", "restricted", "single-numa-node")
_IMAGE_POLICIES = ("NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute", "")


def taints(document: Document, _: FeatureGates) -> Faults:
    """Check taints of the file; pflag has checked those of the flag."""
    for taint in document["registerWithTaints"]:
        value = taint.get("value", "")
        faults = qualified_name_faults(taint["key"]) or (value and label_value_faults(value))
        if faults or taint["effect"] not in _EFFECTS:
            yield f"invalid taint: {{{taint['key']} {value} {taint['effect']} <nil>}}"
        if taint.get("timeAdded"):
            yield f"{INVALID}taint.TimeAdded is not nil"


def topology_manager(document: Document, _: FeatureGates) -> Faults:
    """Check the policy and the scope of the topology manager."""
    policy, scope = document["topologyManagerPolicy"], document["topologyManagerScope"]
    if policy not in _TOPOLOGY:
        valid = " ".join(quoted(word) for word in _TOPOLOGY)
        yield (f"{INVALID}topologyManagerPolicy (--topology-manager-policy) {quoted(policy)} must be one of: [{valid}]")
    if scope not in {"container", "pod"}:
        yield (
            f"{INVALID}topologyManagerScope (--topology-manager-scope) {quoted(scope)} "
            'must be one of: "container", or "pod"'
        )


def graceful_shutdown(document: Document, gates: FeatureGates) -> Faults:
    """Check the two grace periods, and the list by priority that excludes them."""
    names = ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods")
    total, critical = (parse_seconds(document[name]) for name in names)
    by_priority = document["shutdownGracePeriodByPodPriority"]
    if gates.enabled("GracefulNodeShutdown"):
        if critical > total:
            yield f"{INVALID}{names[1]} {{{document[names[1]]}}} must be <= {names[0]} {{{document[names[0]]}}}"
        for name, seconds in zip(names, (total, critical), strict=True):
            if seconds < 0 or 0 < seconds < 1:
                yield f"{INVALID}{name} {{{document[name]}}} must be either zero or otherwise >= 1 sec"
    elif total > 0 or critical > 0:
        yield (
            f"{INVALID}specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods "
            "requires feature gate GracefulNodeShutdown"
        )
    if by_priority and not gates.enabled("GracefulNodeShutdownBasedOnPodPriority"):
        yield (
            f"{INVALID}Specifying shutdownGracePeriodByPodPriority "
            "requires feature gate GracefulNodeShutdownBasedOnPodPriority"
        )
    elif by_priority and (total > 0 or critical > 0):
        yield (
            f"{INVALID}Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"
        )


def memory_swap(document: Document, _: FeatureGates) -> Faults:
    """Check the swap behavior."""
    behavior = document["memorySwap"]["swapBehavior"]
    if behavior not in {"", "NoSwap", "LimitedSwap"}:
        yield (f'{INVALID}memorySwap.swapBehavior {quoted(behavior)} must be one of: "", "LimitedSwap" or "NoSwap"')


def crash_loop(document: Document, gates: FeatureGates) -> Faults:
    """Check the longest back-off before a container restarts."""
    period = document["crashLoopBackOff"].get("maxContainerRestartPeriod")
    if not gates.enabled("KubeletCrashLoopBackOffMax"):
        if period is not None:
            yield (
                f"{INVALID}FeatureGate KubeletCrashLoopBackOffMax not enabled, "
                "CrashLoopBackOff.MaxContainerRestartPeriod must not be set"
            )
    elif period is None:
        yield (
            f"{INVALID}FeatureGate KubeletCrashLoopBackOffMax is enabled, "
            "CrashLoopBackOff.MaxContainerRestartPeriod must be set"
        )
    elif not 1 <= int(parse_seconds(period) * 1000) / 1000 <= 300:
        yield (
            f"{INVALID}CrashLoopBackOff.MaxContainerRestartPeriod (got: {parse_seconds(period):g} seconds) "
            "must be set between 1s and 300s"
        )


def hairpin_mode(document: Document, _: FeatureGates) -> Faults:
    """Check the hairpin mode."""
    mode = document["hairpinMode"]
    if mode not in {"none", "hairpin-veth", "promiscuous-bridge"}:
        yield (
            f"{INVALID}option {quoted(mode)} specified for hairpinMode (--hairpin-mode). "
            'Valid options are "none", "hairpin-veth" or "promiscuous-bridge"'
        )


def image_credentials(document: Document, gates: FeatureGates) -> Faults:
    """Check which pulled images need their credentials verified."""
    policy, allowed = (
        document["imagePullCredentialsVerificationPolicy"],
        document["preloadedImagesVerificationAllowlist"],
    )
    if not gates.enabled("KubeletEnsureSecretPulledImages"):
        for name, value in (
            ("imagePullCredentialsVerificationPolicy", policy),
            ("preloadedImagesVerificationAllowlist", allowed),
        ):
            if value:
                yield (
                    f"{INVALID}`{name}` must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled"
                )
        return
    if policy not in _IMAGE_POLICIES:
        valid = ", ".join(quoted(word) for word in _IMAGE_POLICIES[:-1])
        yield (
            f"{INVALID}option {quoted(policy)} specified for imagePullCredentialsVerificationPolicy. "
            f'Valid options are {valid} or "AlwaysVerify"'
        )
    if allowed and policy != "NeverVerifyAllowlistedImages":
        yield (
            f"{INVALID}can't set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` "
            'is not "NeverVerifyAllowlistedImages"'
        )


def memory_qos(document: Document, gates: FeatureGates) -> Faults:
    """Check how memory is throttled, and what of it is protected."""
    factor, policy = document["memoryThrottlingFactor"], document["memoryReservationPolicy"]
    if not 0 < factor <= 1:
        yield (f"{INVALID}memoryThrottlingFactor {factor:g} must be greater than 0 and less than or equal to 1.0")
    if policy == "TieredReservation" and not gates.enabled("MemoryQoS"):
        yield f"{INVALID}memoryReservationPolicy {quoted(policy)} requires MemoryQoS feature gate to be enabled"
    if policy not in {"None", "TieredReservation"}:
        yield (
            f"{INVALID}option {quoted(policy)} specified for memoryReservationPolicy. "
            'Valid options are "None" or "TieredReservation"'
        )
