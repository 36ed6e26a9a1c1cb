"""pflag's grammar: `--flag=value`, `--flag value`, bare booleans, `-v2`, `_` for `-`; repeated flags add up or win."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.adapters.settings.table import Flag
from agent.adapters.settings.values import READERS, WITHOUT_VALUE
from agent.core.errors import ConfigError
from agent.klog import quoted

_SHORT = {"v": "v", "h": "help", "o": "output"}


@dataclass(slots=True)
class CommandLine:
    """What the flags of a command line say, by name and in order; and the words that are no flags."""

    values: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def parse(arguments: Sequence[str], flags: Mapping[str, Flag], stop: Container[str] = ()) -> CommandLine:
    """Read flags until the end, `--`, or a word in `stop`, from where on everything is words."""
    line, rest = CommandLine(), list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--" or word in stop:
            line.words += [*([] if word == "--" else [word]), *rest]
            break
        if word.startswith("--"):
            _long(word, rest, flags, line)
        elif len(word) > 1 and word.startswith("-"):
            _short(word, rest, flags, line)
        else:
            line.words.append(word)
    return line


def _long(word: str, rest: list[str], flags: Mapping[str, Flag], line: CommandLine) -> None:
    name, equals, value = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise ConfigError(f"failed to parse kubelet flag: bad flag syntax: {word}")
    flag = flags.get(name.replace("_", "-"))
    if flag is None:
        raise ConfigError(f"failed to parse kubelet flag: unknown flag: --{name}")
    needed = f"flag needs an argument: --{name}"
    _set(line, flag, value if equals else _value(flag, rest, needed))


def _short(word: str, rest: list[str], flags: Mapping[str, Flag], line: CommandLine) -> None:
    """`-v 2`, `-v2`, `-v=2`, and `-hv2`: letters without a value may stand together."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = flags.get(_SHORT.get(letter, ""))
        if flag is None:
            raise ConfigError(
                f"failed to parse kubelet flag: unknown shorthand flag: {_rune(letter)} in -{letter}{letters}"
            )
        needed = f"flag needs an argument: {_rune(letter)} in -{letter}{letters}"
        if len(letters) > 1 and letters.startswith("="):
            value, letters = letters[1:], ""
        elif flag.kind in WITHOUT_VALUE:
            value = WITHOUT_VALUE[flag.kind]
        elif letters:
            value, letters = letters, ""
        else:
            value = _value(flag, rest, needed)
        _set(line, flag, value)


def _rune(letter: str) -> str:
    return f"'{letter}'"


def _value(flag: Flag, rest: list[str], needed: str) -> str:
    if flag.kind in WITHOUT_VALUE:
        return WITHOUT_VALUE[flag.kind]
    if not rest:
        raise ConfigError(f"failed to parse kubelet flag: {needed}")
    return rest.pop(0)


def _set(line: CommandLine, flag: Flag, text: str) -> None:
    reader: Callable[[str, Any], Any] = READERS[flag.kind]
    try:
        line.values[flag.name] = reader(text, line.values.get(flag.name))
    except ValueError as error:
        spelled = next((f"-{short}, --{name}" for short, name in _SHORT.items() if name == flag.name), f"--{flag.name}")
        raise ConfigError(
            f"failed to parse kubelet flag: invalid argument {quoted(text)} for {quoted(spelled)} flag: {error}"
        ) from error
