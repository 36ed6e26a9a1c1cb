"""Defaults that depend on something: on other fields, on feature gates, on whether there is a file."""

from collections.abc import Mapping

from agent.adapters.settings.gates import Gates
from agent.adapters.settings.schema import KUBELET
from agent.adapters.settings.structs import Document, fill, write
from agent.core.capacity import parse_cpu_list
from agent.core.errors import ConfigError
from agent.core.kubelet_data.configuration import WITHOUT_FILE
from agent.core.pressure import DEFAULT_HARD


def without_file() -> Document:
    """As kubelet without `--config`: open, as it was before there was a file."""
    document = fill(KUBELET, {})
    for path, value in WITHOUT_FILE.items():
        write(document, path, value)
    return document


def with_file(given: Document, flag_gates: Mapping[str, bool]) -> Document:
    """As kubelet with `--config`: secure, and with hard eviction thresholds."""
    document = again(given, flag_gates)
    # kubelet v1.36: loadConfigFile
    if given.get("evictionHard") is None:
        document["evictionHard"] = dict(DEFAULT_HARD)
    elif document["mergeDefaultEvictionSettings"]:
        document["evictionHard"] = {**DEFAULT_HARD, **given["evictionHard"]}
    return document


def again(given: Document, flag_gates: Mapping[str, bool]) -> Document:
    """The document with defaults, those of one field that follow from another included."""
    document = fill(KUBELET, given)
    gates = _gates({**flag_gates, **document["featureGates"]})
    if given.get("nodeStatusReportFrequency") in {None, "0s"}:
        frequency = given.get("nodeStatusUpdateFrequency")
        if frequency not in {None, "0s"}:
            document["nodeStatusReportFrequency"] = frequency
    if given.get("serializeImagePulls") is None and (given.get("maxParallelImagePulls") or 0) >= 2:
        document["serializeImagePulls"] = False
    if document["podPidsLimit"] < 0:
        document["podPidsLimit"] = -1
    _gated(document, given, gates)
    return document


def _gated(document: Document, given: Document, gates: Gates) -> None:
    """Two fields have a default only while their feature is on."""
    if not gates.enabled("KubeletCrashLoopBackOffMax"):
        document["crashLoopBackOff"] = dict(given.get("crashLoopBackOff", {}))
    if not gates.enabled("KubeletEnsureSecretPulledImages"):
        document["imagePullCredentialsVerificationPolicy"] = given.get("imagePullCredentialsVerificationPolicy", "")


def after_flags(document: Document, cert_dir: str) -> None:
    """The serving certificate that kubelet makes when it is given none."""
    if not (document["serverTLSBootstrap"] or document["tlsCertFile"] or document["tlsPrivateKeyFile"]):
        document["tlsCertFile"], document["tlsPrivateKeyFile"] = f"{cert_dir}/kubelet.crt", f"{cert_dir}/kubelet.key"


def apply_reserved_cpus(document: Document) -> None:
    """A list of reserved CPUs takes the place of the cpu in both reservations."""
    if cpus := document["reservedSystemCPUs"]:
        document["kubeReserved"].pop("cpu", None)
        if document["systemReserved"]:  # kubelet's /configz shares this map with it, but not one that it has to make
            document["systemReserved"]["cpu"] = str(len(parse_cpu_list(cpus)))


def _gates(asked: Mapping[str, bool]) -> Gates:
    gates = Gates(asked)
    try:
        gates.check()
    except ConfigError as error:
        # kubelet panics here, with exit code 2
        raise ConfigError(
            f"failed to merge global and in-flight KubeletConfiguration while setting defaults, error: {error}"
        ) from error
    return gates
