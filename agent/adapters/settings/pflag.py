"""pflag: the grammar of the command line, and the values of flags, refused in Go's words.

`--flag=value`, `--flag value`, bare booleans, `-v2`, `_` for `-`; repeated flags add up or win.
"""

import csv
import io
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from agent.adapters.settings.go_json import Json
from agent.adapters.settings.table import Flag
from agent.core.errors import ConfigError
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.labels import parse_taints
from agent.core.model import NodeTaint
from agent.core.quantity import Quantity, QuantityError
from agent.core.times import format_nanos, parse_nanos
from agent.klog import quoted

SHORT = {"v": "v", "h": "help", "o": "output", "f": "filename"}
"""The flags that may be given by one letter, by that letter."""

Reader = Callable[[str, Any], Any]
"""Parses one occurrence of a flag; the second argument is the value of the occurrences before it, None at first."""


@dataclass(slots=True)
class CommandLine:
    """The values of the flags of a command line, by name and in order, and the words that are no flags."""

    values: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def parse_flags(arguments: Sequence[str], flags: Mapping[str, Flag], stop: Container[str] = ()) -> CommandLine:
    """Parse flags until the end, `--`, or a word in `stop`; what follows is words. Raises ConfigError."""
    line, rest = CommandLine(), list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--" or word in stop:
            line.words += [*([] if word == "--" else [word]), *rest]
            break
        if word.startswith("--"):
            _parse_long(word, rest, flags, line)
        elif len(word) > 1 and word.startswith("-"):
            _parse_short(word, rest, flags, line)
        else:
            line.words.append(word)
    return line


def did_you_mean(word: str, names: Iterable[str], prefix: str = "") -> str:
    """Return the end of an error about a word that is unknown: the name that its writer may have meant, if any."""
    from difflib import get_close_matches  # noqa: PLC0415  for a mistake only

    close = get_close_matches(word, names, n=1, cutoff=0.7)
    return f"; did you mean {prefix}{close[0]}?" if close else ""


def _parse_long(word: str, rest: list[str], flags: Mapping[str, Flag], line: CommandLine) -> None:
    name, equals, value = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise ConfigError(f"failed to parse kubelet flag: bad flag syntax: {word}")
    flag = flags.get(name.replace("_", "-"))
    if flag is None:
        hint = did_you_mean(name.replace("_", "-"), flags, prefix="--")
        raise ConfigError(f"failed to parse kubelet flag: unknown flag: --{name}{hint}")
    missing = f"flag needs an argument: --{name}"
    _set(line, flag, value if equals else _value(flag, rest, missing))


def _parse_short(word: str, rest: list[str], flags: Mapping[str, Flag], line: CommandLine) -> None:
    """`-v 2`, `-v2`, `-v=2`, and `-hv2`: letters without a value may stand together."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = flags.get(SHORT.get(letter, ""))
        if flag is None:
            raise ConfigError(f"failed to parse kubelet flag: unknown shorthand flag: '{letter}' in -{letter}{letters}")
        missing = f"flag needs an argument: '{letter}' in -{letter}{letters}"
        if len(letters) > 1 and letters.startswith("="):
            value, letters = letters[1:], ""
        elif flag.kind in WITHOUT_VALUE:
            value = WITHOUT_VALUE[flag.kind]
        elif letters:
            value, letters = letters, ""
        else:
            value = _value(flag, rest, missing)
        _set(line, flag, value)


def _value(flag: Flag, rest: list[str], missing: str) -> str:
    if flag.kind in WITHOUT_VALUE:
        return WITHOUT_VALUE[flag.kind]
    if not rest:
        raise ConfigError(f"failed to parse kubelet flag: {missing}")
    return rest.pop(0)


def _set(line: CommandLine, flag: Flag, text: str) -> None:
    reader: Callable[[str, Any], Any] = READERS[flag.kind]
    try:
        line.values[flag.name] = reader(text, line.values.get(flag.name))
    except ValueError as error:
        spelled = next((f"-{short}, --{name}" for short, name in SHORT.items() if name == flag.name), f"--{flag.name}")
        raise ConfigError(
            f"failed to parse kubelet flag: invalid argument {quoted(text)} for {quoted(spelled)} flag: {error}"
        ) from error


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
            key, equals, value = item.partition(separator)
            if not equals:
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
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
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
        name, colon, value = item.partition(":")
        if not colon:
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
    node, colon, limits = text.partition(":")
    if not colon or ":" in limits:
        raise ValueError(
            "the reserved memory has incorrect format, "
            f"expected numaNodeID:type=quantity[,type=quantity...], got {text}"
        )
    if not re.fullmatch(r"[+-]?[0-9]+", node):
        raise ValueError(f"failed to convert the NUMA node ID, expected integer, got {node}")
    return {"numaNode": int(node), "limits": dict(_numa_limit(item) for item in limits.split(","))}


def _numa_limit(text: str) -> tuple[str, str]:
    name, equals, amount = text.partition("=")
    if not equals or "=" in amount:
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
"""What help shows for the value of a flag, by the flag's kind."""

WITHOUT_VALUE = {"bool": "true", "version": "true"}
"""The value of `--flag` alone, for the kinds that need no value (pflag: NoOptDefVal)."""
