"""Defaults, files and flags → the effective settings, and the origin of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.adapters.settings import defaults
from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import (
    DecodeError,
    Document,
    decode,
    encode,
    field_paths,
    get_path,
    merge_patch,
    set_path,
    with_defaults,
)
from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.schema import FAKE, KUBELET
from agent.adapters.settings.table import FLAGS, Flag
from agent.adapters.settings.table.ours import LEGACY_FLAG_DEFAULTS
from agent.adapters.settings.table.removed import IN_TREE_CLOUD_PROVIDERS, RENAMED
from agent.adapters.settings.validation import check_configuration
from agent.adapters.settings.validation.start import check_start
from agent.core.errors import ConfigError
from agent.core.labels import check_labels

if TYPE_CHECKING:
    from agent.adapters.settings.config_files import ConfigFile

# Fields that have an effect here and no flag.
_WITHOUT_FLAG = {
    "mergeDefaultEvictionSettings",
    "enableSystemLogHandler",
    "enableProfilingHandler",
    "enableDebugFlagsHandler",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "shutdownGracePeriodByPodPriority",
}


CLIENT_CA = "authentication.x509.clientCAFile"
LENIENT = "Using lenient decoding as strict decoding failed"


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
    strict_errors: list[tuple[str, str]] = field(default_factory=list)
    """What strict decoding rejects, each with its file; the daemon decodes leniently, as kubelet does."""

    @property
    def trusts_cluster_ca(self) -> bool:
        """Whether client certificates are verified with the CA of the API server, as no other is given."""
        return CLIENT_CA not in self.origins and not self.flags.get(LEGACY_FLAG_DEFAULTS)


def effective(arguments: Sequence[str]) -> Effective:
    """Return the settings of a command line. Raises ConfigError with kubelet's words."""
    line = parse_flags(arguments, FLAGS)
    if line.words:
        raise ConfigError(f"unknown command {line.words[0]}")
    return from_flags(line.values)


def from_flags(values: Mapping[str, Any]) -> Effective:
    """Return the settings of parsed flags, and of the files that they name. Raises ConfigError."""
    flags = {name: value for name, value in values.items() if value is not None}
    gates: Mapping[str, bool] = flags.get("feature-gates", {})
    _check_flags(flags, gates)
    if file := flags.get("config", ""):
        result = _from_file(file, gates)
    else:
        kubelet = defaults.without_file() if flags.get(LEGACY_FLAG_DEFAULTS) else defaults.with_file({}, gates)
        result = Effective(kubelet, with_defaults(FAKE, {}), {})
    if directory := flags.get("config-dir", ""):
        _merge_drop_ins(result, directory, gates)
    _apply_flags(result, flags)
    _add_notes(result, flags)
    check_configuration(result.kubelet, FeatureGates(result.kubelet["featureGates"]))
    check_start(result.kubelet, result.flags)
    defaults.apply_reserved_cpus(result.kubelet)
    return result


def _check_flags(flags: Mapping[str, Any], gates: Mapping[str, bool]) -> None:
    """Raise ConfigError for what kubelet refuses before it reads any file."""
    try:
        FeatureGates(gates).check()
    except ConfigError as error:
        raise ConfigError(f"failed to set feature gates from initial flags-based config: {error}") from error
    try:
        check_labels(flags.get("node-labels", {}))
    except ConfigError as error:
        raise ConfigError(f"failed to validate kubelet flags: {error}") from error


def _from_file(name: str, gates: Mapping[str, bool]) -> Effective:
    from agent.adapters.settings.config_files import load_file  # noqa: PLC0415  YAML is for those who have a file

    file = load_file(name)
    result = Effective(defaults.with_file(file.kubelet, gates), with_defaults(FAKE, file.fake), {})
    _record_origins(result, file)
    if file.strict_errors:
        error = f"strict decoding error: {', '.join(file.strict_errors)}"
        result.notes.append(Note(0, LENIENT, {"err": error, "file": file.path}))
        result.strict_errors += [(str(file.path), error) for error in file.strict_errors]
    return result


def _merge_drop_ins(result: Effective, directory: str, gates: Mapping[str, bool]) -> None:
    """Patch the encoded settings, then decode them and apply the defaults again, as kubelet does."""
    from agent.adapters.settings.config_files import load_drop_ins, skipped_drop_ins  # noqa: PLC0415  as above

    merged, fake = encode(KUBELET, result.kubelet), result.fake
    for file in load_drop_ins(directory):
        merged, fake = merge_patch(merged, file.kubelet), fake | file.fake
        _record_origins(result, file)
    try:
        decoded = decode(KUBELET, merged, [])
    except DecodeError as error:
        raise ConfigError(
            "failed to merge kubelet configs: failed to unmarshal merged JSON into kubelet configuration: " + str(error)
        ) from error
    result.kubelet, result.fake = defaults.with_dependent(decoded, gates), with_defaults(FAKE, fake)
    result.notes += [
        Note(4, "Skipped file in drop-in directory (does not have .conf extension)", {"file": path})
        for path in skipped_drop_ins(directory)
    ]


def _record_origins(result: Effective, file: "ConfigFile") -> None:
    for path in (*field_paths(KUBELET, file.kubelet), *field_paths(FAKE, file.fake)):
        result.origins[path] = file.path


def _apply_flags(result: Effective, flags: Mapping[str, Any]) -> None:
    gates = result.kubelet["featureGates"]
    for name, value in flags.items():
        flag = FLAGS[name]
        if not flag.field:
            result.flags[RENAMED.get(name, name)] = value
            continue
        document = result.fake if flag.field in FAKE.fields else result.kubelet
        before = get_path(document, flag.field) if flag.kind == "vmodule" else []  # the one list that a flag adds to
        set_path(document, flag.field, before + value if before else value)
        result.origins[flag.field] = f"--{name}"
    result.kubelet["featureGates"] = {**gates, **flags.get("feature-gates", {})}
    cert_dir = result.flags.get("cert-dir", FLAGS["cert-dir"].default)
    defaults.set_self_signed_certificate(result.kubelet, cert_dir)


def _add_notes(result: Effective, names: Iterable[str]) -> None:
    """Add notes about flags and fields that have no effect, and about flags that are removed or deprecated."""
    flags = [FLAGS[name] for name in names]
    for flag in flags:
        if flag.removed:
            _refuse_if_strict(result, f"unknown flag: --{flag.name}")
            result.notes.append(_removed_flag(flag))
    _add_cloud_provider_note(result)
    if idle := [flag.name for flag in flags if not flag.acts and not flag.removed]:
        result.notes.append(Note(0, "Flags are accepted and have no effect here", {"flags": _joined(idle)}))
    acting = {flag.field for flag in FLAGS.values() if flag.acts} | _WITHOUT_FLAG
    if fields := [path for path, by in result.origins.items() if path not in acting and not by.startswith("--")]:
        result.notes.append(Note(2, "Fields are accepted and have no effect here", {"fields": " ".join(fields)}))
    if deprecated := [flag.name for flag in flags if flag.deprecated]:
        phrase = "Flags are deprecated by kubelet in favour of its config file"
        result.notes.append(Note(1, phrase, {"flags": _joined(deprecated)}))


def _removed_flag(flag: Flag) -> Note:
    fields = {"flag": f"--{flag.name}", "removedIn": f"v{flag.removed}"}
    if flag.name not in RENAMED:
        return Note(-1, "Flag was removed from kubelet and has no effect", fields)
    fields["other"] = f"--{RENAMED[flag.name]}"
    return Note(-1, "Flag was removed from kubelet and is taken for another", fields)


def _joined(names: Iterable[str]) -> str:
    return " ".join(f"--{name}" for name in names)


def _add_cloud_provider_note(result: Effective) -> None:
    """Add a note about a provider that once was built in: kubelet ends here, this node goes on without one."""
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
    fields = {"cloudProvider": name, "removedIn": f"v{IN_TREE_CLOUD_PROVIDERS[name]}"}
    result.notes.append(Note(-1, "Cloud provider was removed from kubelet; going on without one", fields))


def _refuse_if_strict(result: Effective, reason: str) -> None:
    if result.fake["strictFlags"]:
        raise ConfigError(f"failed to parse kubelet flag: {reason}")
