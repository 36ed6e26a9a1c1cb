"""typer commands whose flags are kubelet's: read by pflag's grammar, shown and completed from the table of flags."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from agent.adapters.settings.effective import from_flags
from agent.adapters.settings.go_json import get_path
from agent.adapters.settings.pflag import METAVARS, SHORT, WITHOUT_VALUE, did_you_mean, parse_flags
from agent.adapters.settings.table import FLAGS, GROUPS, OURS, Flag
from agent.adapters.settings.table.row import ACCEPTED, REMOVED
from agent.cli.completion import Typed
from agent.core.errors import ConfigError

CONTEXT = {"help_option_names": ["-h", "--help"], "terminal_width": 120, "max_content_width": 120}
OUTPUT = Flag("output", "string", OURS, "yaml or json.", metavar="FORMAT", choices=("yaml", "json"))


# typer's own base of errors about a command line; it has no public name
UsageError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")


def usage_error(error: Any) -> ConfigError:
    """Return an error that typer raised about a command line, in our words."""
    if hasattr(error, "possibilities"):  # NoSuchOption
        name = error.option_name
        text = f"unknown flag: {name}{did_you_mean(name, error.possibilities or ())}"
    else:
        text = error.format_message().rstrip(".")
        text = text[:1].lower() + text[1:]
    return ConfigError(text, hint=f"{error.ctx.command_path} --help lists what it takes" if error.ctx else "")


class CommandGroup(TyperGroup):
    """Commands that have one word in common, such as `config`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave a known command to typer."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if not args:
            raise ConfigError(f"{ctx.info_name} needs a command: {' or '.join(self.commands)}")
        if not args[0].startswith("-") and args[0] not in self.commands:
            raise ConfigError(f"unknown command {ctx.info_name} {args[0]}{did_you_mean(args[0], self.commands)}")
        return super().parse_args(ctx, args)


class KubeletGroup(TyperGroup):
    """The top level: kubelet's flags, then optionally the name of a command."""

    flags: ClassVar[Mapping[str, Flag]] = FLAGS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse kubelet's flags into `ctx.obj` and leave the rest to typer."""
        if ctx.resilient_parsing:  # completion: incomplete flags are no errors
            return super().parse_args(ctx, args)
        rest = _without_flags(ctx, args, self.flags, stop=self.commands)
        if rest and rest[0] not in {"--help", *self.commands}:
            raise ConfigError(
                f"unknown command {rest[0]}{did_you_mean(rest[0], self.commands)}",
                hint=f"{ctx.command_path} --help lists the commands",
            )
        return super().parse_args(ctx, rest)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return typer's own options, and kubelet's for the completion of a shell."""
        return [*super().get_params(ctx), *(_options(self.flags, ctx.obj) if ctx.resilient_parsing else ())]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the flags by group, then the commands."""
        _write_flags(formatter)
        self.format_commands(ctx, formatter)


class KubeletCommand(TyperCommand):
    """A command that takes kubelet's flags, and `-o`."""

    flags: ClassVar[Mapping[str, Flag]] = {**FLAGS, "output": OUTPUT}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse kubelet's flags and `-o` into `ctx.obj`."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        rest = _without_flags(ctx, args, self.flags)
        if rest and rest[0] != "--help":
            raise ConfigError(f"unexpected argument {rest[0]}")
        return super().parse_args(ctx, rest)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return typer's own options, and kubelet's for the completion of a shell."""
        return [*super().get_params(ctx), *(_options(self.flags, ctx.obj) if ctx.resilient_parsing else ())]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the command's own flags, and refer to kubelet's."""
        super().format_options(ctx, formatter)
        with formatter.section("Flags"):
            shown = [("-o, --output FORMAT", "yaml or json.")] if ctx.info_name == "show" else []
            formatter.write_dl([*shown, ("--config FILE ...", "All flags of `fake-kubelet --help`.")])


class _Option(TyperOption):
    """A flag of kubelet's in a completion."""

    def __init__(self, flag: Flag, typed: Typed) -> None:
        is_typed = typed.flag == flag.name
        values = ("true", "false") if flag.kind == "bool" else flag.choices
        super().__init__(
            param_decls=[*(f"-{short}" for short, name in SHORT.items() if name == flag.name), f"--{flag.name}"],
            help=flag.help,
            is_flag=flag.kind in WITHOUT_VALUE and not is_typed,
            autocompletion=lambda *_: values,
        )
        self._prefix = typed.prefix if is_typed else ""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the values that begin with what is typed, as the shell wants them."""
        items = super().shell_complete(ctx, incomplete)
        for item in items:
            item.value = f"{self._prefix}{item.value}"
        return items


def _without_flags(ctx: Any, args: list[str], flags: Mapping[str, Flag], stop: Iterable[str] = ()) -> list[str]:
    line = parse_flags(args, flags, frozenset(stop))
    wants_help = line.values.pop("help", False)
    ctx.obj = {**(ctx.obj or {}), **line.values}  # flags may stand before the command, too
    return ["--help"] if wants_help else line.words


def _options(flags: Mapping[str, Flag], typed: Typed | None) -> Iterator[TyperOption]:
    for flag in flags.values():
        if flag.group != REMOVED and flag.name != "help":
            yield _Option(flag, typed or Typed())


def _write_flags(formatter: Any) -> None:
    defaults = default_settings()
    for group in GROUPS:
        rows = [flag for flag in FLAGS.values() if flag.group == group]
        if group == ACCEPTED:
            rows.sort(key=lambda flag: flag.name)
        if group != REMOVED:
            with formatter.section(group):
                formatter.write_dl([(flag_usage(flag), flag_help(flag, defaults)) for flag in rows], col_max=42)


def default_settings() -> Mapping[str, Any]:
    """Return the settings of a command line without flags: what holds where nothing else is said."""
    settings = from_flags({})
    return settings.kubelet | settings.fake


def flag_usage(flag: Flag) -> str:
    """Return a flag as help prints it: `--max-pods N`."""
    name = {"v": "-v, --v", "help": "-h, --help"}.get(flag.name, f"--{flag.name}")
    return f"{name} {metavar(flag)}".strip()


def metavar(flag: Flag) -> str:
    """Return the placeholder of a flag's value."""
    return flag.metavar or "|".join(flag.choices) or METAVARS[flag.kind]


def flag_help(flag: Flag, defaults: Mapping[str, Any]) -> str:
    """Return what a flag does, and its default."""
    default = default_text(flag, defaults)
    return f"{flag.help} Default: {default}.".lstrip() if default else flag.help


def default_text(flag: Flag, defaults: Mapping[str, Any]) -> str:
    """Return a flag's default as kubelet prints it; empty for none, and for false."""
    value = get_path(dict(defaults), flag.field) if flag.field else flag.default
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, dict):
        separator = "<" if flag.kind == "thresholds" else "="
        return ",".join(f"{key}{separator}{amount}" for key, amount in value.items())
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return "" if value in (None, "", 0, "0") else str(value)


__all__ = [
    "CONTEXT",
    "CommandGroup",
    "KubeletCommand",
    "KubeletGroup",
    "default_settings",
    "default_text",
    "flag_help",
    "flag_usage",
    "metavar",
]
