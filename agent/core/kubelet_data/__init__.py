"""What is the kubelet's own: its version, feature gates, flags, configuration and cAdvisor's metrics.

`make sync-kubelet` writes the modules beside this one, from the Go code of the version that tests/cluster/go.mod pins.
"""

from typing import Any, NamedTuple


class Gate(NamedTuple):
    """One feature gate; a locked one cannot leave its default."""

    stage: str  # ALPHA, BETA, DEPRECATED, or empty when stable
    default: bool
    locked: bool


# The rows below are plain tuples, because equal ones are one constant in a compiled module.
KubeletFlag = tuple[str, str, str, bool]
"""A flag: its kind (of READERS in settings/pflag.py), its field of KubeletConfiguration or else its default, deprecated."""

ConfigField = tuple[str, Any, bool]
"""A field of a struct: its Go type, its default where that is not zero, whether it is printed even when empty."""

Metric = tuple[str, str]
"""A metric of cAdvisor: its type and its help."""
