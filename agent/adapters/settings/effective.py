"""Defaults, files and flags → the effective settings, and where each came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.adapters.settings import defaults, validation
from agent.adapters.settings.gates import Gates
from agent.adapters.settings.kinds import DecodeError
from agent.adapters.settings.pflag import parse
from agent.adapters.settings.schema import FAKE, KUBELET
from agent.adapters.settings.structs import Document, decode, fill, given_paths, merge_patch, printed, read, write
from agent.adapters.settings.table import FLAGS, Flag
from agent.adapters.settings.table.removed import IN_TREE_CLOUD_PROVIDERS, RENAMED
from agent.adapters.settings.validation import start
from agent.core.errors import ConfigError
from agent.core.labels import check_labels

if TYPE_CHECKING:
    from agent.adapters.settings.files import Loaded


_WITHOUT_FLAG = {
    "mergeDefaultEvictionSettings",
    "enableSystemLogHandler",
    "enableProfilingHandler",
    "enableDebugFlagsHandler",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
}


class Note(NamedTuple):
    """Something to log once logging is set up; `verbosity` below 0 is a warning."""

    verbosity: int
    phrase: str
    fields: dict[str, Any]


@dataclass(slots=True)
class Effective:
    """All settings of one start: kubelet's document, ours, and the flags that are in neither."""

    kubelet: Document
    fake: Document
    flags: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict)  # dotted path, or --flag, → where its value came from
    notes: list[Note] = field(default_factory=list)


def effective(arguments: Sequence[str]) -> Effective:
    """The settings that a command line asks for; a ConfigError says what is wrong in kubelet's words."""
    line = parse(arguments, FLAGS)
    if line.words:
        raise ConfigError(f"unknown command {line.words[0]}")
    return from_flags(line.values)


def from_flags(values: Mapping[str, Any]) -> Effective:
    """The settings that parsed flags ask for, files included."""
    given = {name: value for name, value in values.items() if value is not None}
    _check_flags(given)
    config_file, directory = given.get("config", ""), given.get("config-dir", "")
    gates: Mapping[str, bool] = given.get("feature-gates", {})
    result = _from_file(config_file, gates) if config_file else Effective(defaults.without_file(), fill(FAKE, {}), {})
    if directory:
        _merge_drop_ins(result, directory, gates)
    _apply_flags(result, given)
    _tell(result, given)
    validation.check(result.kubelet, Gates(result.kubelet["featureGates"]))
    start.check(result.kubelet, result.flags)
    defaults.apply_reserved_cpus(result.kubelet)
    return result


def _check_flags(given: Mapping[str, Any]) -> None:
    """What kubelet refuses before it reads any file."""
    try:
        Gates(given.get("feature-gates", {})).check()
    except ConfigError as error:
        raise ConfigError(f"failed to set feature gates from initial flags-based config: {error}") from error
    try:
        check_labels(given.get("node-labels", {}))
    except ConfigError as error:
        raise ConfigError(f"failed to validate kubelet flags: {error}") from error


def _from_file(name: str, gates: Mapping[str, bool]) -> Effective:
    from agent.adapters.settings.files import load_file  # noqa: PLC0415  YAML is for those who have a file

    loaded = load_file(name)
    result = Effective(defaults.with_file(loaded.kubelet, gates), fill(FAKE, loaded.fake), {})
    _remember(result, loaded, loaded.kubelet)
    if loaded.oddities:
        fault = f"strict decoding error: {', '.join(loaded.oddities)}"
        result.notes.append(
            Note(0, "Using lenient decoding as strict decoding failed", {"err": fault, "file": loaded.path})
        )
    return result


def _merge_drop_ins(result: Effective, directory: str, gates: Mapping[str, bool]) -> None:
    """Patch what the file and the defaults print to, then decode and default again, as kubelet does."""
    from agent.adapters.settings.files import load_drop_ins, skipped_drop_ins  # noqa: PLC0415  as above

    merged, fake = printed(KUBELET, result.kubelet), result.fake
    for loaded in load_drop_ins(directory):
        merged, fake = merge_patch(merged, loaded.kubelet), fake | loaded.fake
        _remember(result, loaded, loaded.kubelet)
    try:
        decoded = decode(KUBELET, merged, [])
    except DecodeError as error:
        raise ConfigError(
            "failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: " + str(error)
        ) from error
    result.kubelet, result.fake = defaults.again(decoded, gates), fill(FAKE, fake)
    result.notes += [
        Note(4, "Skipped file in drop-in directory (does not have .conf extension)", {"file": path})
        for path in skipped_drop_ins(directory)
    ]


def _remember(result: Effective, loaded: "Loaded", document: Document) -> None:
    for path in given_paths(KUBELET, document):
        result.origins[path] = loaded.path
    for path in given_paths(FAKE, loaded.fake):
        result.origins[path] = loaded.path


def _apply_flags(result: Effective, given: Mapping[str, Any]) -> None:
    gates = result.kubelet["featureGates"]
    for name, value in given.items():
        flag = FLAGS[name]
        if not flag.field:
            result.flags[RENAMED.get(name, name)] = value
            continue
        target = result.fake if flag.field in FAKE.fields else result.kubelet
        added = read(target, flag.field) if flag.kind == "vmodule" else []  # the one list that a flag adds to
        write(target, flag.field, added + value if added else value)
        result.origins[flag.field] = f"--{name}"
    result.kubelet["featureGates"] = {**gates, **given.get("feature-gates", {})}
    defaults.after_flags(result.kubelet, result.flags.get("cert-dir", FLAGS["cert-dir"].default))


def _tell(result: Effective, given: Mapping[str, Any]) -> None:
    """Notes about flags that do nothing, were removed, or are deprecated."""
    flags = [FLAGS[name] for name in given]
    for flag in flags:
        if flag.removed:
            _refuse_if_strict(result, f"unknown flag: --{flag.name}")
            result.notes.append(_removed(flag))
    _tell_cloud_provider(result)
    if idle := _names(flag for flag in flags if not flag.acts and not flag.removed):
        result.notes.append(Note(0, "Flags are accepted and have no effect here", {"flags": idle}))
    if fields := _idle_fields(result.origins):
        result.notes.append(Note(2, "Fields are accepted and have no effect here", {"fields": " ".join(fields)}))
    if old := _names(flag for flag in flags if flag.deprecated):
        result.notes.append(Note(1, "Flags are deprecated by kubelet in favour of its config file", {"flags": old}))


def _removed(flag: Flag) -> Note:
    told = {"flag": f"--{flag.name}", "removedIn": f"v{flag.removed}"}
    if flag.name in RENAMED:
        return Note(
            -1, "Flag was removed from kubelet and is taken for another", told | {"other": f"--{RENAMED[flag.name]}"}
        )
    return Note(-1, "Flag was removed from kubelet and has no effect", told)


def _idle_fields(origins: Mapping[str, str]) -> list[str]:
    """The fields that a file sets and nothing here reads."""
    read = {flag.field for flag in FLAGS.values() if flag.acts} | _WITHOUT_FLAG
    return [path for path, origin in origins.items() if path not in read and not origin.startswith("--")]


def _names(flags: Any) -> str:
    return " ".join(f"--{flag.name}" for flag in flags)


def _tell_cloud_provider(result: Effective) -> None:
    """A provider that once was built in: kubelet ends here, we go on without one."""
    name = result.flags.get("cloud-provider", "")
    if name in {"", "external"}:
        return
    refusal = (
        f'cloud provider "{name}" was specified, but built-in cloud providers are disabled. '
        "Please set --cloud-provider=external and migrate to an external cloud provider"
    )
    _refuse_if_strict(result, refusal)
    if name not in IN_TREE_CLOUD_PROVIDERS:
        raise ConfigError(f"failed to run Kubelet: {refusal}")
    note = {"cloudProvider": name, "removedIn": f"v{IN_TREE_CLOUD_PROVIDERS[name]}"}
    result.notes.append(Note(-1, "Cloud provider was removed from kubelet; going on without one", note))


def _refuse_if_strict(result: Effective, reason: str) -> None:
    if result.fake["strictFlags"]:
        raise ConfigError(f"failed to parse kubelet flag: {reason}")
