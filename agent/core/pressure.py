"""Node pressure: eviction signals against thresholds."""

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.errors import ConfigError
from agent.core.model import Filesystem, HostSnapshot
from agent.core.quantity import Quantity, QuantityError
from agent.core.times import parse_seconds

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

_DIGITS = "[0-9](?:_?[0-9])*"
_NUMBER = re.compile(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")


class Observation(NamedTuple):
    """The available amount of a resource, and its capacity."""

    available: int
    capacity: int


class ThresholdValue(NamedTuple):
    """A number in the signal's own unit, or a percentage of its capacity."""

    number: int | None = None
    percent: float | None = None

    def of(self, capacity: int) -> int:
        """Return the value in the signal's own unit."""
        return self.number if self.number is not None else share(capacity, self.percent or 0.0)


_NOTHING = ThresholdValue(0)


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least amount of a signal that is not pressure."""

    signal: str
    value: ThresholdValue
    minimum_reclaim: ThresholdValue = _NOTHING  # once short, so much more than the value must be free again
    grace_seconds: float = 0.0  # how long a soft threshold is borne before pods go; the condition does not wait

    @property
    def condition(self) -> str:
        """The node condition that this signal drives."""
        return CONDITION_OF_SIGNAL[self.signal]

    def is_met(self, signal: Observation, *, was_due: bool) -> bool:
        """Return whether the resource is short; one whose grace period was over must recover by the minimum reclaim."""
        reclaim = self.minimum_reclaim.of(signal.capacity) if was_due else 0
        return signal.available < self.value.of(signal.capacity) + reclaim


@dataclass(frozen=True, slots=True)
class NodePressure:
    """The thresholds met at the last observation, and when each condition was last seen, on the monotonic clock."""

    met: Mapping[Threshold, float]
    due: frozenset[Threshold]  # those met whose grace period is over
    last_seen_seconds: Mapping[str, float]

    @property
    def conditions(self) -> frozenset[str]:
        """The conditions that are reported True."""
        return frozenset(self.last_seen_seconds)


NO_PRESSURE = NodePressure({}, frozenset(), {})


def share(capacity: int, percent: float) -> int:
    """Return a percentage of a capacity in the float32 arithmetic of Go's kubelet: 10 % is 0.10000000149."""
    fraction = _float32(_float32(percent) / 100)
    return int(float(capacity) * fraction)


def parse_thresholds(
    pairs: Mapping[str, str],
    *,
    minimum_reclaim: Mapping[str, str] | None = None,
    grace_periods: Mapping[str, str] | None = None,
) -> tuple[Threshold, ...]:
    """Read kubelet's eviction maps; soft thresholds are those with grace periods. A ConfigError names what is wrong."""
    reclaims = {signal: _reclaim(signal, text) for signal, text in (minimum_reclaim or {}).items()}
    graces = None if grace_periods is None else {_checked_signal(s): _grace(text) for s, text in grace_periods.items()}
    thresholds = []
    for signal, text in pairs.items():
        value = _value(signal, text)
        if value is None or signal.startswith("containerfs."):
            continue  # kubelet v1.36 derives containerfs from nodefs, whatever is set
        if graces is not None and signal not in graces:
            raise ConfigError(f"grace period must be specified for the soft eviction threshold {signal}")
        thresholds.append(Threshold(signal, value, reclaims.get(signal, _NOTHING), (graces or {}).get(signal, 0.0)))
    return tuple(thresholds)


def signal_observations(host: HostSnapshot) -> dict[str, Observation]:
    """Return the signals that can be observed on this host."""
    signals = {}
    if host.memory_available_bytes is not None:
        signals["memory.available"] = Observation(host.memory_available_bytes, host.memory_bytes)
    if host.pids_used is not None:
        signals["pid.available"] = Observation(host.pids_max - host.pids_used, host.pids_max)
    # Nothing is run here, so images and writable layers would share the node's own filesystem.
    for name in ("nodefs", "imagefs", "containerfs"):
        signals |= _filesystem_signals(name, host.nodefs)
    return signals


def next_pressure(
    before: NodePressure,
    thresholds: tuple[Threshold, ...],
    signals: Mapping[str, Observation],
    *,
    now_seconds: float,
    transition_seconds: float,
) -> NodePressure:
    """Return the conditions seen now, and those last seen less than the transition period ago."""
    met = {
        threshold: before.met.get(threshold, now_seconds)
        for threshold in thresholds
        if (signal := signals.get(threshold.signal)) and threshold.is_met(signal, was_due=threshold in before.due)
    }
    due = frozenset(threshold for threshold, since in met.items() if now_seconds - since >= threshold.grace_seconds)
    seen = dict.fromkeys((threshold.condition for threshold in met), now_seconds)
    kept = {kind: at for kind, at in before.last_seen_seconds.items() if now_seconds - at < transition_seconds}
    return NodePressure(met, due, kept | seen)


def _filesystem_signals(name: str, fs: Filesystem | None) -> dict[str, Observation]:
    if fs is None:
        return {}
    return {
        f"{name}.available": Observation(fs.available_bytes, fs.capacity_bytes),
        f"{name}.inodesFree": Observation(fs.inodes_free, fs.inodes),
    }


def _checked_signal(signal: str) -> str:
    if signal not in CONDITION_OF_SIGNAL:
        raise ConfigError(f"unsupported eviction signal {signal}")
    return signal


def _value(signal: str, text: str) -> ThresholdValue | None:
    """A threshold's value; 0 % and 100 % switch the signal off."""
    if _checked_signal(signal) and text.endswith("%"):
        percent = _percent(signal, text)
        if percent < 0:
            raise ConfigError(f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if percent > 100:
            raise ConfigError(f"eviction percentage threshold {signal} must be <= 100%: {text}")
        return None if text in {"0%", "100%"} else ThresholdValue(percent=percent)
    quantity = _quantity(signal, text)
    if quantity.nano <= 0:
        raise ConfigError(f"eviction threshold {signal} must be positive: {quantity}")
    return ThresholdValue(quantity.value)


def _reclaim(signal: str, text: str) -> ThresholdValue:
    if _checked_signal(signal) and text.endswith("%"):
        percent = _percent(signal, text)
        if percent <= 0:
            raise ConfigError(f"eviction percentage minimum reclaim {signal} must be positive: {text}")
        return ThresholdValue(percent=percent)
    quantity = _quantity(signal, text)
    if quantity.nano < 0:
        raise ConfigError(f"negative eviction minimum reclaim specified for {signal}")
    return ThresholdValue(quantity.value)


def _grace(text: str) -> float:
    try:
        seconds = parse_seconds(text)
    except ValueError as error:
        raise ConfigError(f"eviction soft grace period: {error}") from error
    if seconds < 0:
        raise ConfigError(f"invalid eviction grace period specified: {text}, must be a positive value")
    return seconds


def _quantity(signal: str, text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise ConfigError(f"eviction threshold {signal}: {text}: {error}") from error


def _percent(signal: str, text: str) -> float:
    """Go's ParseFloat, but for NaN, which a kubelet takes and then computes nonsense with, and hexadecimals."""
    number = text.rstrip("%")
    percent = _float32(float(number)) if _NUMBER.fullmatch(number) else math.nan
    if not math.isfinite(percent):
        fault = "invalid syntax" if math.isnan(percent) else "value out of range"
        raise ConfigError(f'eviction threshold {signal}: strconv.ParseFloat: parsing "{number}": {fault}')
    return percent


def _float32(number: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded
