"""The shape of a row in the table of flags, and the groups that help shows."""

from dataclasses import dataclass

from agent.core.kubelet_data.flags import KUBELET_FLAGS

CONFIGURATION, IDENTITY, HEARTBEAT, NODE_RESOURCES, EVICTION, SERVING, TLS, LOGGING, OURS, ACCEPTED, REMOVED = (
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
GROUPS = (CONFIGURATION, IDENTITY, HEARTBEAT, NODE_RESOURCES, EVICTION, SERVING, TLS, LOGGING, OURS, ACCEPTED, REMOVED)


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: what it takes, where help shows it, and the field of KubeletConfiguration that it sets."""

    name: str
    kind: str  # a key of pflag.READERS
    group: str
    help: str = ""
    field: str = ""  # a dotted path in KubeletConfiguration, or in ours for our own
    metavar: str = ""  # what help shows instead of the metavar of the kind
    default: str = ""  # for a flag without a field; the others have it from the schema
    deprecated: bool = False  # kubelet wants it to be set in the config file, or gone
    removed: str = ""  # the version of Kubernetes that no longer has it
    choices: tuple[str, ...] = ()  # all values that it takes, if they are few

    @property
    def is_kubelets(self) -> bool:
        """Whether a kubelet has it too."""
        return self.group != OURS and not self.removed

    @property
    def acts(self) -> bool:
        """Whether it changes anything here."""
        return self.group not in {ACCEPTED, REMOVED}


def kubelet_flag(name: str, group: str, text: str = "", metavar: str = "", *, choices: tuple[str, ...] = ()) -> Flag:
    """The row of a flag that kubelet has: its type, field, default and deprecation are kubelet's own."""
    kind, field, default, deprecated = KUBELET_FLAGS[name]
    return Flag(name, kind, group, text, field, metavar, default, deprecated, choices=choices)
