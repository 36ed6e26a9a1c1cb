"""What a plain command of a container does: how long it runs, how it ends, and what it prints. Nothing is executed.

Understood are `sleep`, `exit`, `true`, `false`, `echo`, `cat` of a file of the downward API, and `sh -c` of these,
joined by `;`, `&&`, `||` and line ends, with `$NAME` from the environment. Anything else runs until it is ended.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from agent.core.model import Container, PodObject
from agent.core.pods.accessors import placed_containers
from agent.core.pods.environment import environment, expanded, file

_LONGEST_SCRIPT = 16_384
_LONGEST_COMMANDS = 65_536  # of a pod, its environment variables included
_SMALLEST_VARIABLE = 16
_MOST_COMMANDS = 1000
_DEEPEST = 8  # shells within shells
_MOST_OUTPUT = 65_536
_MOST_SECONDS = 10 * 365 * 24 * 3600.0
_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_BUILT_IN = frozenset({"exit", "echo", "true", "false", ":"})  # of these, only echo, true and false are programs, too
_PROGRAMS = _SHELLS | {"sleep", "echo", "true", "false", "cat"}
_IMAGES_WITHOUT_ENTRYPOINT = frozenset({"busybox", "alpine", "debian", "ubuntu"})  # their args are the command
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_VALUE = r"\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_SPECIAL = r"""\s;&|<>()$`"'\\*?\[\]{}~\#!"""  # characters that mean something to a shell
_TOKEN = re.compile(
    rf"""(?P<space>(?:[ \t]|\\\n)+) | (?P<comment>\#[^\n]*) | (?P<operator>&&|\|\||;|\n)
    | (?P<word>(?:[^{_SPECIAL}] | {_VALUE} | '[^']*' | "(?:[^"`$\\] | \\["$\\] | {_VALUE})*"
        | \\[^\s\w] | \\[ ] | (?<=\S)[\#!~])+)""",
    re.VERBOSE,
)
_PART = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
_SLEEP = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


class Output(NamedTuple):
    """A line that a container prints, and when, counted from its start."""

    at_seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """What a command does; `run_seconds` is None where it does not end by itself."""

    run_seconds: float | None
    exit_code: int = 0
    output: tuple[Output, ...] = ()


class _Unknown(Exception):
    """The command is none of those that are understood."""


Files = Callable[[str], str | None]
"""The content of a file by its path; None if it is not known."""


def has_short_commands(pod: PodObject) -> bool:
    """Return whether the commands of a pod are short enough together to be read again with each look at it.

    An API server stores 1.5 MB of them, for which the event loop would stand still; such a pod has none for us.
    """
    left = _LONGEST_COMMANDS
    for _, container in placed_containers(pod):
        left -= sum(map(len, (*(container.get("command") or ()), *(container.get("args") or ()))))
        left -= sum(len(entry.get("value") or "") + _SMALLEST_VARIABLE for entry in container.get("env") or ())
        if left < 0:
            return False
    return True


def command_plan(pod: PodObject, container: Container) -> CommandPlan | None:
    """Return what the command of a container does; None if it has none that is understood."""
    words = container.get("command") or ()
    if not words and _image_name(container["image"]) not in _IMAGES_WITHOUT_ENTRYPOINT:
        return None
    words = [*words, *(container.get("args") or ())]
    if not words or _base_name(words[0]) not in _PROGRAMS:
        return None  # before all variables are computed, which most containers do not need
    variables = environment(pod, container)
    words = [expanded(word, variables) for word in words]
    return understood(words, variables, lambda path: file(pod, container, path))


def understood(command: Sequence[str], environment: Mapping[str, str], files: Files) -> CommandPlan | None:
    """Return what a command line does; None if not even its beginning is understood."""
    run = _Run(environment, files)
    try:
        run.program(command)
    except _Unknown:
        return CommandPlan(None, 0, tuple(run.output)) if run.output or run.seconds else None
    return CommandPlan(run.seconds, run.code, tuple(run.output))


class _Exit(Exception):
    """The script has ended."""


class _Run:
    """One run of a command line, in its own time."""

    def __init__(self, environment: Mapping[str, str], files: Files) -> None:
        self.seconds = 0.0
        self.code = 0
        self.output: list[Output] = []
        self._environment = environment
        self._files = files
        self._printed = 0
        self._commands = 0
        self._depth = 0

    def program(self, command: Sequence[str]) -> None:
        """Run a command line without a shell. Raises _Unknown."""
        if not command:
            raise _Unknown
        name = _base_name(command[0])
        if name in _SHELLS:
            self._shell(command[1:])
        elif name in {"exit", ":"}:
            raise _Unknown  # a shell knows them, but there is no such program
        else:
            self.code = self._simple([name, *command[1:]])

    def _shell(self, arguments: Sequence[str]) -> None:
        stops_at_error, index = False, 0
        while index < len(arguments) and re.fullmatch("-[ceux]+", arguments[index]):
            options, index = arguments[index], index + 1
            stops_at_error |= "e" in options
            if "c" in options:
                break
        else:
            raise _Unknown
        if index >= len(arguments) or "x" in options:
            raise _Unknown
        self._depth += 1  # a script can call itself by a variable
        if self._depth > _DEEPEST:
            raise _Unknown
        with suppress(_Exit):
            self._script(arguments[index], stops_at_error=stops_at_error)
        self._depth -= 1

    def _script(self, text: str, *, stops_at_error: bool) -> None:
        """Run the commands of a script in turn. `&&` and `||` bind equally, from the left, as in any shell."""
        self.code = 0
        for operator, words, is_last in _commands(text):
            self._commands += 1
            if self._commands > _MOST_COMMANDS:
                raise _Unknown
            if (operator == "&&" and self.code) or (operator == "||" and not self.code):
                continue
            self.code = self._simple([self._expanded(word) for word in words], in_shell=True)
            if self.code and stops_at_error and is_last:
                return

    def _simple(self, words: Sequence[str], *, in_shell: bool = False) -> int:
        """Run one command. Returns its exit code; raises _Unknown."""
        name, arguments = (_base_name(words[0]) if words[0] not in _BUILT_IN else words[0]), words[1:]
        match name:
            case "true" | ":":
                return 0
            case "false":
                return 1
            case "sleep":
                self.seconds = min(self.seconds + _sleep_seconds(arguments), _MOST_SECONDS)
                return 0
            case "echo":
                self._print(_echoed(arguments))
                return 0
            case "cat":
                for path in arguments or [""]:
                    self._print(self._file(path))
                return 0
            case "exit" if in_shell and len(arguments) <= 1:
                if arguments:
                    self.code = _exit_code(arguments[0])
                raise _Exit
            case "sh" | "bash" | "ash" | "dash" if in_shell:
                self._shell(arguments)
                return self.code
        raise _Unknown

    def _print(self, text: str) -> None:
        self._printed += len(text) + 1
        if self._printed > _MOST_OUTPUT:
            raise _Unknown
        self.output.extend(Output(self.seconds, line) for line in text.split("\n"))

    def _file(self, path: str) -> str:
        content = self._files(path) if path.startswith("/") else None
        if content is None:
            raise _Unknown
        return content.removesuffix("\n")

    def _expanded(self, word: str) -> str:
        """Return a word without its quotes, with the values of variables."""
        return "".join(self._part(match) for match in _PART.finditer(word))

    def _part(self, match: re.Match[str]) -> str:
        literal, quoted, escaped, plain = match.groups()
        if literal is not None or escaped is not None:
            return literal if literal is not None else escaped
        if quoted is not None:
            pieces = re.split(r"\\([\"$\\])", quoted)  # every second one was escaped
            return "".join(piece if at % 2 else self._with_values(piece) for at, piece in enumerate(pieces))
        value = self._with_values(plain)
        if value != plain and (not value or re.search(r"[\s*?\[]", value)):
            raise _Unknown  # a shell would split it into words, or look for files
        return value

    def _with_values(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if name not in self._environment:
                raise _Unknown
            return self._environment[name]

        return _VARIABLE.sub(value, text)


def _commands(text: str) -> Iterator[tuple[str, list[str], bool]]:
    """Yield each command with the operator before it, and whether no && or || follows. Raises _Unknown."""
    commands: list[tuple[str, list[str]]] = [(";", [])]
    for kind, piece in _tokens(text):
        if kind == "word":
            commands[-1][1].append(piece)
        elif commands[-1][1]:
            commands.append((piece, []))
        elif piece != "\n":
            raise _Unknown
    if not commands[-1][1] and commands.pop()[0] in {"&&", "||"}:
        raise _Unknown
    following = [*(operator for operator, _ in commands[1:]), ";"]
    for (operator, words), after in zip(commands, following, strict=False):
        yield operator, words, after in {";", "\n"}


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    if len(text) > _LONGEST_SCRIPT:
        raise _Unknown
    at, after_word = 0, False
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at or (match.lastgroup == "comment" and after_word):
            raise _Unknown
        kind, at = match.lastgroup or "", match.end()
        after_word = kind == "word"
        if kind in {"word", "operator"}:
            yield kind, match[0]


def _base_name(path: str) -> str:
    directory, _, name = path.rpartition("/")
    return name if directory in {"", "/bin", "/usr/bin", "/usr/local/bin"} else path


def _image_name(image: str) -> str:
    """Return the last part of an image's name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _sleep_seconds(arguments: Sequence[str]) -> float:
    matches = [_SLEEP.fullmatch(text) for text in arguments]
    if not matches:
        raise _Unknown
    total = 0.0
    for match in matches:
        if match is None:
            raise _Unknown
        total += float(match[1][:20]) * _UNITS[match[2]]
    return total


def _echoed(arguments: Sequence[str]) -> str:
    """Return what echo prints. Shells disagree about options and backslashes, so they are not understood, but -n."""
    if arguments and arguments[0] == "-n":
        arguments = arguments[1:]
    if any("\\" in text for text in arguments) or (arguments and re.fullmatch("-[neE]+", arguments[0])):
        raise _Unknown
    return " ".join(arguments)


def _exit_code(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise _Unknown
    return int(text) % 256
