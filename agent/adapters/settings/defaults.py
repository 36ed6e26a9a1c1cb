"""Defaults that depend on something: on other fields, on feature gates, on --legacy-flag-defaults."""

from collections.abc import Mapping

from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import Document, get_path, leaves, set_path, with_defaults
from agent.adapters.settings.schema import KUBELET
from agent.core.capacity import parse_cpu_list
from agent.core.errors import ConfigError
from agent.core.kubelet_data.configuration import WITHOUT_FILE
from agent.core.pressure import DEFAULT_HARD

_REASONS = {
    "authentication.anonymous.enabled": "--legacy-flag-defaults",
    "authentication.webhook.enabled": "--legacy-flag-defaults",
    "authorization.mode": "--legacy-flag-defaults",
    "readOnlyPort": "--legacy-flag-defaults",
    "evictionHard": "kubelet's default with a config file",
    "nodeStatusReportFrequency": "follows nodeStatusUpdateFrequency",
    "serializeImagePulls": "follows maxParallelImagePulls",
    "crashLoopBackOff.maxContainerRestartPeriod": "follows featureGates",
    "imagePullCredentialsVerificationPolicy": "follows featureGates",
    "tlsCertFile": "follows --cert-dir",
    "tlsPrivateKeyFile": "follows --cert-dir",
}


def without_file() -> Document:
    """Return kubelet's defaults without `--config`, which are open, as they were before there was a file."""
    document = with_defaults(KUBELET, {})
    for path, value in WITHOUT_FILE.items():
        set_path(document, path, value)
    return document


def with_file(decoded: Document, flag_gates: Mapping[str, bool]) -> Document:
    """Return a file's document with kubelet's defaults, which are secure and have hard eviction thresholds."""
    document = with_dependent(decoded, flag_gates)
    # kubelet v1.36: loadConfigFile
    if decoded.get("evictionHard") is None:
        document["evictionHard"] = dict(DEFAULT_HARD)
    elif document["mergeDefaultEvictionSettings"]:
        document["evictionHard"] = {**DEFAULT_HARD, **decoded["evictionHard"]}
    return document


def with_dependent(decoded: Document, flag_gates: Mapping[str, bool]) -> Document:
    """Return the document with defaults, including those that depend on other fields and on feature gates."""
    document = with_defaults(KUBELET, decoded)
    gates = FeatureGates({**flag_gates, **document["featureGates"]})
    try:
        gates.check()
    except ConfigError as error:
        # kubelet panics here, with exit code 2
        raise ConfigError(
            f"failed to merge global and in-flight KubeletConfiguration while setting defaults, error: {error}"
        ) from error
    if decoded.get("nodeStatusReportFrequency") in {None, "0s"}:
        frequency = decoded.get("nodeStatusUpdateFrequency")
        if frequency not in {None, "0s"}:
            document["nodeStatusReportFrequency"] = frequency
    if decoded.get("serializeImagePulls") is None and (decoded.get("maxParallelImagePulls") or 0) >= 2:
        document["serializeImagePulls"] = False
    if document["podPidsLimit"] < 0:
        document["podPidsLimit"] = -1
    # Two fields have a default only while their feature is on.
    if not gates.enabled("KubeletCrashLoopBackOffMax"):
        document["crashLoopBackOff"] = dict(decoded.get("crashLoopBackOff", {}))
    if not gates.enabled("KubeletEnsureSecretPulledImages"):
        document["imagePullCredentialsVerificationPolicy"] = decoded.get("imagePullCredentialsVerificationPolicy", "")
    return document


def set_self_signed_certificate(document: Document, cert_dir: str) -> None:
    """Set the files of the certificate that kubelet makes for itself, where the settings name none."""
    if not (document["serverTLSBootstrap"] or document["tlsCertFile"] or document["tlsPrivateKeyFile"]):
        document["tlsCertFile"], document["tlsPrivateKeyFile"] = f"{cert_dir}/kubelet.crt", f"{cert_dir}/kubelet.key"


def apply_reserved_cpus(document: Document) -> None:
    """Replace the cpu of both reservations by the list of reserved CPUs, if there is one."""
    if cpus := document["reservedSystemCPUs"]:
        document["kubeReserved"].pop("cpu", None)
        if document["systemReserved"]:  # kubelet's /configz shares this map with it, but not one that it has to make
            document["systemReserved"]["cpu"] = str(len(parse_cpu_list(cpus)))


def derived_origins(document: Document, origins: Mapping[str, str]) -> dict[str, str]:
    """Return the reason for each value that is not the default of its field although no flag and no file set it."""
    fields = dict(leaves(KUBELET))
    reasons = {}
    for path, reason in _REASONS.items():
        field = fields[path]
        default = field.type.zero if field.default is None else field.default
        if path not in origins and get_path(document, path) != default:
            reasons[path] = reason
    return reasons
