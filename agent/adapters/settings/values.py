"""The values of flags: text → value for each of pflag's types, refused in Go's words."""

import csv
import io
import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from agent.adapters.settings.kinds import Json
from agent.core.errors import ConfigError
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.labels import parse_taints
from agent.core.model import NodeTaint
from agent.core.quantity import Quantity, QuantityError
from agent.core.times import format_nanos, parse_nanos
from agent.klog import quoted

Reader = Callable[[str, Any], Any]
"""Reads one occurrence of a flag, given what the occurrences before it made, None at first."""

_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_HUGE_PAGES = "hugepages-"


def _bool(text: str, _: Any) -> bool:
    if text not in _BOOLEANS:
        raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")
    return _BOOLEANS[text]


def _string(text: str, _: Any) -> str:
    return text


def _integer(low: int, high: int, function: str = "ParseInt", base: int = 0) -> Reader:
    def read(text: str, _: Any) -> int:
        try:
            number = _go_integer(text, base)
        except ValueError:
            raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax") from None
        if function == "ParseUint" and text[:1] in {"-", "+"}:
            raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
        if not low <= number <= high:
            raise ValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
        return number

    return read


def _go_integer(text: str, base: int) -> int:
    """Go's base 0 takes 0x1f, 0o17, 0b1 and 017; Python's refuses the last."""
    if base == 0 and re.fullmatch(r"[+-]?0[0-7_]+", text):
        return int(text, 8)
    if not text.isascii() or text != text.strip() or (base == 10 and "_" in text):
        raise ValueError(text)
    return int(text, base)


def _duration(text: str, _: Any) -> str:
    return format_nanos(parse_nanos(text))


def _strings(text: str, before: list[str] | None) -> list[str]:
    """A line of CSV, as pflag reads it: a value with a comma is quoted."""
    items = next(csv.reader(io.StringIO(text)), []) if text else []
    return [*(before or []), *items]


def _pairs(separator: str, *, split: bool = True) -> Reader:
    def read(text: str, before: dict[str, str] | None) -> dict[str, str]:
        pairs = dict(before or {})
        for item in [item for item in text.split(",") if item] if split else [text]:
            key, found, value = item.partition(separator)
            if not found:
                raise ValueError(f"malformed pair, expect string{separator}string")
            pairs[key.strip()] = value.strip()
        return pairs

    return read


def _labels(text: str, before: dict[str, str] | None) -> dict[str, str]:
    """As a map, but a key alone has an empty value."""
    items = [item.partition("=") for item in text.split(",") if item]
    return {**(before or {}), **{key.strip(): value.strip() for key, _, value in items}}


def _gates(text: str, before: dict[str, bool] | None) -> dict[str, bool]:
    gates = dict(before or {})
    for item in [item for item in text.split(",") if item]:
        key, found, value = (part.strip() for part in item.partition("="))
        if not found:
            raise ValueError("malformed pair, expect string=bool")
        if value not in _BOOLEANS:
            raise ValueError(
                f"invalid value of {key}: {value}, err: strconv.ParseBool: parsing {quoted(value)}: invalid syntax"
            )
        gates[key] = _BOOLEANS[value]
    return gates


def _headers(text: str, before: dict[str, list[str]] | None) -> dict[str, list[str]]:
    headers = {name: list(values) for name, values in (before or {}).items()}
    for item in [item for item in text.split(",") if item]:
        name, found, value = item.partition(":")
        if not found:
            raise ValueError("malformed pair, expect string:string")
        headers.setdefault(name.strip(), []).append(value.strip())
    return headers


def _ip(text: str, before: str | None) -> str | None:
    if not text:
        return before
    try:
        ip_address(re.sub(r"(^|\.)0+(?=\d)", r"\1", text))  # as Go's sloppy parser: 010.0.0.1 is 10.0.0.1
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a valid IP address") from None
    return text


def _taints(text: str, _: Any) -> list[NodeTaint]:
    try:
        return [taint.as_object() for taint in parse_taints(text)]
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _reserved_memory(text: str, before: list[Json] | None) -> list[Json] | None:
    """`0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi`, once or repeated."""
    if not text:
        return before
    return [*(before or []), *(_numa_node(part) for part in text.split(";"))]


def _numa_node(text: str) -> Json:
    node, found, limits = text.partition(":")
    if not found or ":" in limits:
        raise ValueError(
            "the reserved memory has incorrect format, "
            f"expected numaNodeID:type=quantity[,type=quantity...], got {text}"
        )
    if not re.fullmatch(r"[+-]?[0-9]+", node):
        raise ValueError(f"failed to convert the NUMA node ID, expected integer, got {node}")
    return {"numaNode": int(node), "limits": dict(_numa_limit(item) for item in limits.split(","))}


def _numa_limit(text: str) -> tuple[str, str]:
    name, found, amount = text.partition("=")
    if not found or "=" in amount:
        raise ValueError(f"the reserved limit has incorrect value, expected type=quantity, got {text}")
    if name != "memory" and not name.startswith(_HUGE_PAGES):
        raise ValueError(f"memory type conversion error, unknown type: {quoted(name)}")
    try:
        return name, str(Quantity.parse(amount))
    except QuantityError:
        raise ValueError(f"failed to parse the quantity: {amount}") from None


def _vmodule(text: str, before: list[Json] | None) -> list[Json]:
    items = list(before or [])
    for item in [item for item in text.split(",") if item]:
        pattern, _, level = item.partition("=")
        if not pattern or not level or "=" in level:
            raise ValueError(f"{quoted(item)} does not have the pattern=N format")
        try:
            items.append({"filePattern": pattern, "verbosity": _LEVEL(level, None)})
        except ValueError as error:
            raise ValueError(f"parsing verbosity in {quoted(item)}: {error}") from error
    return items


def _quantity(text: str, _: Any) -> str:
    return str(Quantity.parse(text))


def _version(text: str, _: Any) -> str:
    if text.startswith("v"):
        if not re.fullmatch(re.escape(KUBELET_VERSION) + r"(?:[-+].*)?", text):
            raise ValueError(
                f"version {quoted(text)} must match major/minor/patch of default version {quoted(KUBELET_VERSION)}"
            )
        return text
    if text == "raw":
        return text
    return "true" if _bool(text, None) else "false"


_LEVEL = _integer(0, 2**31 - 1, "ParseUint", base=10)

READERS: dict[str, Reader] = {
    "bool": _bool,
    "string": _string,
    "int32": _integer(-(2**31), 2**31 - 1),
    "int64": _integer(-(2**63), 2**63 - 1),
    "duration": _duration,
    "strings": _strings,
    "map": _pairs("="),
    "pair": _pairs("=", split=False),
    "thresholds": _pairs("<"),
    "labels": _labels,
    "gates": _gates,
    "headers": _headers,
    "ip": _ip,
    "taints": _taints,
    "reserved-memory": _reserved_memory,
    "level": _LEVEL,
    "vmodule": _vmodule,
    "quantity": _quantity,
    "version": _version,
}

METAVARS = {
    "bool": "",
    "string": "TEXT",
    "int32": "N",
    "int64": "N",
    "duration": "DURATION",
    "strings": "A,B,...",
    "map": "K=V,...",
    "pair": "K=V",
    "thresholds": "SIGNAL<V,...",
    "labels": "K=V,...",
    "gates": "K=BOOL,...",
    "headers": "NAME:VALUE,...",
    "ip": "IP",
    "taints": "K=V:EFFECT,...",
    "reserved-memory": "NUMA:K=V,...",
    "level": "N",
    "vmodule": "PATTERN=N,...",
    "quantity": "QUANTITY",
    "version": "",
}
"""How help shows what a flag of a kind takes."""

WITHOUT_VALUE = {"bool": "true", "version": "true"}
"""What `--flag` alone means, for the kinds that may stand alone."""
