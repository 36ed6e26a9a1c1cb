"""Why a value that nobody gave is not the usual default."""

from collections.abc import Mapping

from agent.adapters.settings.kinds import Field, Json
from agent.adapters.settings.schema import KUBELET, leaves
from agent.adapters.settings.structs import Document, read

_REASONS = {
    "authentication.anonymous.enabled": "kubelet's default without --config",
    "authentication.webhook.enabled": "kubelet's default without --config",
    "authorization.mode": "kubelet's default without --config",
    "readOnlyPort": "kubelet's default without --config",
    "evictionHard": "kubelet's default with --config",
    "nodeStatusReportFrequency": "follows nodeStatusUpdateFrequency",
    "serializeImagePulls": "follows maxParallelImagePulls",
    "crashLoopBackOff.maxContainerRestartPeriod": "follows featureGates",
    "imagePullCredentialsVerificationPolicy": "follows featureGates",
    "tlsCertFile": "follows --cert-dir",
    "tlsPrivateKeyFile": "follows --cert-dir",
}


def derived(document: Document, given: Mapping[str, str]) -> dict[str, str]:
    """The reason for each value that is no default although no flag and no file gave it."""
    fields = dict(leaves(KUBELET))
    return {
        path: reason
        for path, reason in _REASONS.items()
        if path not in given and read(document, path) != _usual(fields[path])
    }


def _usual(field: Field) -> Json:
    return field.kind.zero if field.default is None else field.default
