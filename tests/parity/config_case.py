"""One way to start a kubelet, for the comparison of configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@dataclass(frozen=True)
class ConfigCase:
    """One start: flags, a config file as YAML (without its header, which says what it is), drop-ins by name."""

    id: str
    flags: Sequence[str] = ()
    config: str | None = None
    drop_ins: Mapping[str, str] = field(default_factory=dict)
    only_ours: Sequence[str] = ()  # flags that a kubelet of today refuses, or that only fake-kubelet has
    as_it_is: bool = False  # the file's text is complete


def flags_case(case_id: str, *flags: str, **options: Any) -> ConfigCase:
    """A start without a file."""
    return ConfigCase(case_id, flags, **options)


def file_case(case_id: str, config: str, *flags: str, **options: Any) -> ConfigCase:
    """A start with a file."""
    return ConfigCase(case_id, flags, config, **options)
