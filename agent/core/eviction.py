"""Eviction signals against thresholds: when is the node under pressure?"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.errors import ConfigError
from agent.core.model import Filesystem, HostSnapshot
from agent.core.quantity import Quantity, QuantityError

# kubelet v1.36: eviction.signalToNodeCondition
CONDITION_OF_SIGNAL = {
    "memory.available": "MemoryPressure",
    "allocatableMemory.available": "MemoryPressure",
    "nodefs.available": "DiskPressure",
    "nodefs.inodesFree": "DiskPressure",
    "imagefs.available": "DiskPressure",
    "imagefs.inodesFree": "DiskPressure",
    "containerfs.available": "DiskPressure",
    "containerfs.inodesFree": "DiskPressure",
    "pid.available": "PIDPressure",
}

# kubelet v1.36: eviction.DefaultEvictionHard; it applies to a config file that does not set evictionHard.
DEFAULT_HARD = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}


class Observation(NamedTuple):
    """What is left of a resource, and how much there is in all."""

    available: int
    capacity: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least amount of a signal that is not pressure: an amount, or a share of its capacity."""

    signal: str
    amount: int | None = None
    percent: float | None = None

    @property
    def condition(self) -> str:
        """The node condition that this signal drives."""
        return CONDITION_OF_SIGNAL[self.signal]

    def of(self, capacity: int) -> int:
        """The threshold in the signal's own unit."""
        return self.amount if self.amount is not None else share(capacity, self.percent or 0.0)


@dataclass(frozen=True, slots=True)
class Pressure:
    """Since when, on the monotonic clock, each condition was last observed."""

    last_seen_seconds: Mapping[str, float]

    @property
    def conditions(self) -> frozenset[str]:
        """The conditions that are reported True."""
        return frozenset(self.last_seen_seconds)


NO_PRESSURE = Pressure({})


def share(capacity: int, percent: float) -> int:
    """A percentage of a capacity in the float32 arithmetic of Go's kubelet: 10 % is 0.10000000149."""
    fraction = _float32(_float32(percent) / 100)
    return int(float(capacity) * fraction)


def parse_thresholds(pairs: Mapping[str, str]) -> tuple[Threshold, ...]:
    """Read `signal: value` pairs as kubelet's eviction maps; a ConfigError names what is wrong."""
    return tuple(threshold for signal, value in pairs.items() if (threshold := _parse_threshold(signal, value)))


def observe(host: HostSnapshot) -> dict[str, Observation]:
    """The signals this host can tell; one that it cannot is left out."""
    signals = {
        "memory.available": Observation(host.memory_available_bytes, host.memory_bytes),
        "pid.available": Observation(host.pids_max - host.pids_used, host.pids_max),
    }
    # Nothing is run here, so images and writable layers would share the node's own filesystem.
    for name in ("nodefs", "imagefs", "containerfs"):
        signals |= _filesystem_signals(name, host.nodefs)
    return signals


def pressure(
    before: Pressure,
    thresholds: tuple[Threshold, ...],
    signals: Mapping[str, Observation],
    *,
    now_seconds: float,
    transition_seconds: float,
) -> Pressure:
    """Conditions seen now, and those last seen less than the transition period ago."""
    seen = dict.fromkeys((t.condition for t in thresholds if _is_met(t, signals)), now_seconds)
    kept = {c: at for c, at in before.last_seen_seconds.items() if now_seconds - at < transition_seconds}
    return Pressure(kept | seen)


def _is_met(threshold: Threshold, signals: Mapping[str, Observation]) -> bool:
    signal = signals.get(threshold.signal)
    return signal is not None and signal.available < threshold.of(signal.capacity)


def _filesystem_signals(name: str, fs: Filesystem | None) -> dict[str, Observation]:
    if fs is None:
        return {}
    return {
        f"{name}.available": Observation(fs.available_bytes, fs.capacity_bytes),
        f"{name}.inodesFree": Observation(fs.inodes_free, fs.inodes),
    }


def _parse_threshold(signal: str, value: str) -> Threshold | None:
    if signal not in CONDITION_OF_SIGNAL:
        raise ConfigError(f"unsupported eviction signal {signal}")
    if value.endswith("%"):
        return _parse_percentage(signal, value)
    try:
        quantity = Quantity.parse(value)
    except QuantityError as error:
        raise ConfigError(f"eviction threshold {signal}: {value}: {error}") from error
    if quantity.nano <= 0:
        raise ConfigError(f"eviction threshold {signal} must be positive: {quantity}")
    return Threshold(signal, amount=quantity.value)


def _parse_percentage(signal: str, value: str) -> Threshold | None:
    try:
        percent = float(value.removesuffix("%"))
    except ValueError as error:
        raise ConfigError(f"eviction threshold {signal}: {value} is not a percentage") from error
    if percent < 0:
        raise ConfigError(f"eviction percentage threshold {signal} must be >= 0%: {value}")
    if percent > 100:
        raise ConfigError(f"eviction percentage threshold {signal} must be <= 100%: {value}")
    return None if value in {"0%", "100%"} else Threshold(signal, percent=percent)


def _float32(number: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded
