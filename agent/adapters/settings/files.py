"""The files of settings: `--config` and the drop-ins of `--config-dir`, decoded and merged as kubelet does."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.adapters.go_yaml import Parsed, load_documents
from agent.adapters.settings.kinds import DecodeError
from agent.adapters.settings.schema import FAKE, FAKE_API, FAKE_KIND, KUBELET, KUBELET_API, KUBELET_KIND
from agent.adapters.settings.structs import Document, decode
from agent.core.errors import ConfigError

# kubelet v1.36: KubeletConfigurationPathRefs; relative ones are relative to the file.
_PATHS = (
    ("staticPodPath",),
    ("authentication", "x509", "clientCAFile"),
    ("tlsCertFile",),
    ("tlsPrivateKeyFile",),
    ("resolvConf",),
    ("volumePluginDir",),
    ("podLogsDir",),
)


@dataclass(slots=True)
class Loaded:
    """What one file says to kubelet and to us, and what in it is not understood."""

    path: str
    kubelet: Document
    fake: Document = field(default_factory=dict)
    oddities: list[str] = field(default_factory=list)


def load_file(name: str) -> Loaded:
    """The `--config` file; a ConfigError has kubelet's words."""
    try:
        loaded = _read(name)
        unknown: list[str] = []
        loaded.kubelet = decode(KUBELET, _of_kind(loaded.kubelet), unknown)
        loaded.oddities += [f'unknown field "{path}"' for path in sorted(unknown)]
        _make_absolute(loaded.kubelet, Path(name).absolute().parent)
    except DecodeError as error:
        raise _cannot_load(name, f"failed to decode: {error}") from error
    except ConfigError as error:
        raise _cannot_load(name, str(error)) from error
    return loaded


def load_drop_ins(directory: str) -> Iterator[Loaded]:
    """The drop-ins in lexical order of their paths, not decoded: they are patches."""
    for path in _walk(directory):
        try:
            loaded = _read(path)
            if loaded.kubelet or not loaded.fake:
                loaded.kubelet = _of_kind(loaded.kubelet)
        except ConfigError as error:
            raise ConfigError(
                f'failed to merge kubelet configs: failed to walk through kubelet dropin directory "{directory}": '
                f"failed to load kubelet dropin file, path: {path}, error: {error}"
            ) from error
        yield loaded


def skipped_drop_ins(directory: str) -> list[str]:
    """The files that are no drop-ins, for the log."""
    return [path for path in _all_files(directory) if not path.endswith(".conf")]


def _walk(directory: str) -> list[str]:
    if not Path(directory).is_dir():
        raise ConfigError(
            f'failed to merge kubelet configs: failed to walk through kubelet dropin directory "{directory}": '
            f"lstat {directory}: no such file or directory"
        )
    return [path for path in _all_files(directory) if path.endswith(".conf")]


def _all_files(directory: str) -> list[str]:
    """As Go's WalkDir: each directory's entries in lexical order, subdirectories where they stand."""
    found: list[str] = []
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        found += _all_files(entry.path) if entry.is_dir(follow_symlinks=False) else [entry.path]
    return found


def _read(name: str) -> Loaded:
    path = Path(name).absolute()
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"open {path}: {error.strerror.lower()}" if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f'failed to read kubelet config file "{path}", error: {reason}') from error
    if not text:
        raise ConfigError(f'kubelet config file "{path}" was empty')
    try:
        return _sorted_by_kind(name, load_documents(text))
    except ConfigError as error:
        raise ConfigError(f"failed to decode: {error}") from error


def _sorted_by_kind(name: str, parsed: Parsed) -> Loaded:
    """Our documents apart from kubelet's, of which, as in a kubelet, the first counts."""
    loaded, others = Loaded(name, {}, oddities=parsed.duplicates), []
    for document in parsed.documents:
        if isinstance(document, dict) and document.get("apiVersion") == FAKE_API:
            loaded.fake |= _our_own(document)
        else:
            others.append(document)
    loaded.kubelet = others[0] if others else {}
    loaded.oddities += ["only the first document is read"] if len(others) > 1 else []
    return loaded


def _our_own(document: Document) -> Document:
    """Our document is strict: a field that we do not know is a mistake."""
    if document.get("kind") != FAKE_KIND:
        raise ConfigError(f'no kind "{document.get("kind", "")}" is registered for version "{FAKE_API}"')
    unknown: list[str] = []
    given = {name: value for name, value in document.items() if name not in {"apiVersion", "kind"}}
    decoded = decode(FAKE, given, unknown)
    if unknown:
        raise ConfigError(f'{FAKE_KIND}: unknown field "{unknown[0]}"')
    return decoded


def _of_kind(document: Any) -> Document:
    """The fields of a document that says it is a KubeletConfiguration."""
    if not isinstance(document, dict):
        raise ConfigError("couldn't get version/kind; json parse error: the document is no mapping")
    kind, version = document.get("kind"), document.get("apiVersion")
    for name, value in (("Kind", kind), ("apiVersion", version)):
        if not value:
            raise ConfigError(f"failed to decode: Object '{name}' is missing")
    if (version, kind) != (KUBELET_API, KUBELET_KIND):
        raise ConfigError(
            f'failed to decode: no kind "{kind}" is registered for version "{version}": '
            f"expected {KUBELET_KIND} of {KUBELET_API}"
        )
    return {name: value for name, value in document.items() if name not in {"apiVersion", "kind"}}


def _make_absolute(document: Document, directory: Path) -> None:
    for *parents, last in _PATHS:
        holder: Any = document
        for name in parents:
            holder = holder.get(name, {})
        if value := holder.get(last):
            holder[last] = os.path.normpath(directory / value) if not value.startswith("/") else value


def _cannot_load(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"failed to load kubelet config file, path: {name}, error: "
        f"failed to load Kubelet config file {name}, error {reason}"
    )
