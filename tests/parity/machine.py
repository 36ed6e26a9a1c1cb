"""What a real kubelet needs to start on a machine without cgroups of its own, as fields and as flags."""

from collections.abc import Mapping
from typing import Any

from tests.parity.configz import Machine

_FLAGS = {
    "failCgroupV1": "fail-cgroupv1",
    "cgroupsPerQOS": "cgroups-per-qos",
    "enforceNodeAllocatable": "enforce-node-allocatable",
    "failSwapOn": "fail-swap-on",
    "makeIPTablesUtilChains": "make-iptables-util-chains",
    "containerRuntimeEndpoint": "container-runtime-endpoint",
    "port": "port",
    "address": "address",
    "healthzPort": "healthz-port",
    "volumePluginDir": "volume-plugin-dir",
}


def needed(machine: Machine, port: int) -> dict[str, Any]:
    """The fields."""
    return {
        "failCgroupV1": False,
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        "containerRuntimeEndpoint": machine.runtime_endpoint,
        "port": port,
        "address": "127.0.0.1",
        "healthzPort": 0,
        "podLogsDir": str(machine.directory / "pod-logs"),
        "volumePluginDir": str(machine.directory / "volume-plugins"),
    }


def as_flags(base: Mapping[str, Any]) -> list[str]:
    """The same as flags, and no read-only port, which a kubelet without a file would open."""
    return [*(f"--{flag}={_text(base[field])}" for field, flag in _FLAGS.items()), "--read-only-port=0"]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value == [] else str(value)
