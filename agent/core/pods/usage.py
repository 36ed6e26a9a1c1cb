"""How much CPU and memory a container seems to use, by annotations of its pod or by a rule of the settings.

fake-kubelet.dev/usage-cpu: 250m             each container of the pod
fake-kubelet.dev/usage-memory: 80% of limit
usage-cpu.fake-kubelet.dev/NAME: …           one container
kwok.x-k8s.io/usage-cpu, -memory: …          as KWOK reads it: each container

A value is an amount (a quantity, or a share of request or limit), or a shape over the time since the pod has started:
ramp(FROM, TO, DURATION), sine(LOW, HIGH, PERIOD), step(AMOUNT, AMOUNT@TIME, …), noise(MEAN, SPREAD%).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal
from zlib import crc32

from agent.core.model import Container, PodObject
from agent.core.pods.accessors import annotations_of
from agent.core.pods.curve import Curve, Point
from agent.core.quantity import QuantityError, parse_quantity
from agent.core.times import parse_nanos

Resource = Literal["cpu", "memory"]
_DOMAIN, _KWOK = "fake-kubelet.dev", "kwok.x-k8s.io"
_LONGEST_VALUE = 1024
_MOST_NANO = 10**27  # an exabyte
_MOST_STEPS = 100
_SEEDS = 64
_SHAPE = re.compile(r"([a-z]+)\((.*)\)")
_SHARE = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)% of (request|limit)")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%")
NOTHING = Curve.constant(0)
_PAUSE: Mapping[Resource, Curve] = {"cpu": Curve.constant(10**5), "memory": Curve.constant(512 * 2**10 * 10**9)}


class UsageError(ValueError):
    """The value is no usage; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a container seems to use, over the time since its pod has started."""

    cpu: Curve = NOTHING
    memory: Curve = NOTHING


@dataclass(frozen=True, slots=True)
class _Scope:
    """What a value is read for."""

    resource: Resource
    container: Container
    seed: str

    def share_of(self, kind: str) -> int:
        """Return a request or limit in billionths; nothing where the container has none."""
        resources = self.container.get("resources") or {}
        amounts = (resources.get("limits") if kind == "limit" else resources.get("requests")) or {}
        return parse_quantity(str(amounts.get(self.resource, "0"))).nano


def says_usage(pod: PodObject, rules: Mapping[Resource, str]) -> bool:
    """Return whether anything says what a container of the pod uses."""
    return bool(rules) or any("/usage-" in key or key.startswith("usage-") for key in annotations_of(pod))


def container_usage(pod: PodObject, container: Container, rules: Mapping[Resource, str]) -> Usage:
    """Return what a container uses: by the first annotation that makes sense, otherwise by the rules.

    It is cut off at the container's limits, and where it is nothing, a container uses what a pause container does:
    metrics-server shows no pod of which one container uses nothing.
    """
    return Usage(cpu=_limited(pod, container, "cpu", rules), memory=_limited(pod, container, "memory", rules))


def check_usage(text: str) -> str:
    """Return why a value says nothing; an empty text where it says something."""
    try:
        parse_usage(text, _Scope("cpu", {"name": "", "image": ""}, ""))
    except UsageError as error:
        return str(error)
    return ""


def parse_usage(text: str, scope: _Scope) -> Curve:
    """Read a value. Raises UsageError."""
    text = text.strip()
    if len(text) > _LONGEST_VALUE:
        raise UsageError(f"it is longer than {_LONGEST_VALUE} characters")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return Curve.constant(_amount(text, scope))
    reader = _SHAPES.get(shape[1])
    if reader is None:
        raise UsageError(f'"{shape[1]}" is no shape; use ramp, sine, step or noise')
    return reader([part.strip() for part in shape[2].split(",")], scope)


def _limited(pod: PodObject, container: Container, resource: Resource, rules: Mapping[Resource, str]) -> Curve:
    limit = _Scope(resource, container, "").share_of("limit")
    curve = _curve(pod, container, resource, rules)
    return _PAUSE[resource] if curve == NOTHING else _cut(curve, limit)


@lru_cache(maxsize=512)
def _cut(curve: Curve, limit: int) -> Curve:
    """Return the curve within a limit, or the first of equal ones: the pods of a workload have one in memory."""
    return curve.at_most(limit) if limit > 0 else curve


def _curve(pod: PodObject, container: Container, resource: Resource, rules: Mapping[Resource, str]) -> Curve:
    annotations, name = annotations_of(pod), container["name"]
    scope = _Scope(resource, container, _seed(f"{pod['metadata']['uid']}/{name}/{resource}"))
    keys = (f"usage-{resource}.{_DOMAIN}/{name}", f"{_DOMAIN}/usage-{resource}", f"{_KWOK}/usage-{resource}")
    for text in (*(annotations.get(key) for key in keys), rules.get(resource)):
        if text:
            try:
                return parse_usage(text, scope)
            except UsageError:
                continue  # an event says so
    return NOTHING


def _seed(name: str) -> str:
    """Return one of a few seeds: a curve of its own for each of thousands of containers would take much memory."""
    return str(crc32(name.encode()) % _SEEDS)


def _amount(text: str, scope: _Scope) -> int:
    """Return an amount in billionths."""
    if share := _SHARE.fullmatch(text):
        return round(scope.share_of(share[2]) * float(share[1]) / 100)
    if "%" in text:
        raise UsageError(f'"{text}" is no share; write "60% of request" or "80% of limit"')
    try:
        nano = parse_quantity(text).nano
    except QuantityError:
        raise UsageError(f'"{text}" is neither a quantity such as 250m or 64Mi, nor a share, nor a shape') from None
    if not 0 <= nano <= _MOST_NANO:
        raise UsageError(f'"{text}" is out of range')
    return nano


def _duration_ms(text: str) -> int:
    """Return a duration above zero in milliseconds."""
    try:
        milliseconds = parse_nanos(text) // 10**6
    except ValueError:
        milliseconds = 0
    if milliseconds <= 0:
        raise UsageError(f'"{text}" is no duration such as 90s, 10m or 1h')
    return milliseconds


def _three(name: str, parts: list[str], scope: _Scope) -> tuple[int, int, int]:
    if len(parts) != 3:
        raise UsageError(f"{name} takes two amounts and a duration, as {name}(100m, 400m, 1h)")
    return _amount(parts[0], scope), _amount(parts[1], scope), _duration_ms(parts[2])


def _ramp(parts: list[str], scope: _Scope) -> Curve:
    return Curve.ramp(*_three("ramp", parts, scope))


def _sine(parts: list[str], scope: _Scope) -> Curve:
    low, high, period_ms = _three("sine", parts, scope)
    if period_ms < 1000:
        raise UsageError("the period of sine is at least 1s")
    return _sine_curve(low, high, period_ms)


def _step(parts: list[str], scope: _Scope) -> Curve:
    if len(parts) > _MOST_STEPS:
        raise UsageError(f"step takes {_MOST_STEPS} amounts at most")
    points = [Point(0, _amount(parts[0], scope))]
    for part in parts[1:]:
        amount, at, moment = part.partition("@")
        if not at:
            raise UsageError(f'"{part}" has no time; write step(100m, 400m@5m, 100m@15m)')
        points.append(Point(_duration_ms(moment.strip()), _amount(amount.strip(), scope)))
    if any(later.at_ms <= earlier.at_ms for earlier, later in pairwise(points)):
        raise UsageError("the times of step have to rise")
    return Curve.steps(points)


def _noise(parts: list[str], scope: _Scope) -> Curve:
    spread = _PERCENT.fullmatch(parts[1]) if len(parts) == 2 else None
    if spread is None:
        raise UsageError("noise takes an amount and a percentage, as noise(200m, 10%)")
    return _noise_curve(_amount(parts[0], scope), float(spread[1]) / 100, scope.seed)


# A pod is read again with each of its changes.
_sine_curve = lru_cache(maxsize=256)(Curve.sine)
_noise_curve = lru_cache(maxsize=256)(Curve.noise)
_SHAPES: Mapping[str, Callable[[list[str], _Scope], Curve]] = {
    "ramp": _ramp,
    "sine": _sine,
    "step": _step,
    "noise": _noise,
}
