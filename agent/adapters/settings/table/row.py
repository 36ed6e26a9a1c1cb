"""The shape of a row in the table of flags, and the groups that help shows."""

from dataclasses import dataclass

CONFIGURATION, IDENTITY, HEARTBEAT, RESOURCES, EVICTION, SERVING, TLS, LOGGING, OURS, ACCEPTED, REMOVED = (
    "Configuration",
    "Registration and identity",
    "Heartbeat",
    "Resources",
    "Eviction",
    "Serving",
    "TLS",
    "Logging",
    "Only in fake-kubelet",
    "Accepted, no effect",
    "Removed from kubelet",
)
GROUPS = (CONFIGURATION, IDENTITY, HEARTBEAT, RESOURCES, EVICTION, SERVING, TLS, LOGGING, OURS, ACCEPTED, REMOVED)

# kubelet v1.36: AddKubeletConfigFlags deprecates every flag that has a field, but these.
_NOT_DEPRECATED = frozenset({"v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1"})


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: what it takes, where help shows it, and the field of KubeletConfiguration that it sets."""

    name: str
    kind: str  # a key of values.READERS
    group: str
    help: str = ""
    field: str = ""  # a dotted path in KubeletConfiguration, or in ours for our own
    metavar: str = ""  # what help shows where the kind says too little
    default: str = ""  # for a flag without a field; the others have it from the schema
    deprecated: bool = False  # by kubelet, for another reason than having a field
    removed: str = ""  # the version of Kubernetes that no longer has it

    @property
    def is_kubelets(self) -> bool:
        """Whether a kubelet v1.36 has it too."""
        return self.group != OURS and not self.removed

    @property
    def is_deprecated(self) -> bool:
        """Whether kubelet wants it to be set in the config file, or gone."""
        return self.deprecated or (self.is_kubelets and bool(self.field) and self.name not in _NOT_DEPRECATED)

    @property
    def acts(self) -> bool:
        """Whether it changes anything here."""
        return self.group not in {ACCEPTED, REMOVED}
