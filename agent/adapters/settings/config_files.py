"""The config files: `--config` and the drop-ins of `--config-dir`, decoded as kubelet does."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.adapters.go_yaml import Parsed, load_documents
from agent.adapters.settings.go_json import DecodeError, Document, decode
from agent.adapters.settings.schema import FAKE, FAKE_API, FAKE_KIND, KUBELET, KUBELET_API, KUBELET_KIND
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
class ConfigFile:
    """The documents of one file, kubelet's and ours, and what strict decoding would reject in it."""

    path: str
    kubelet: Document
    fake: Document = field(default_factory=dict)
    strict_errors: list[str] = field(default_factory=list)


def load_file(name: str) -> ConfigFile:
    """Return the `--config` file, decoded. Raises ConfigError with kubelet's words."""
    try:
        file = _read(name)
        unknown: list[str] = []
        file.kubelet = decode(KUBELET, _kubelet_document(file.kubelet), unknown)
        file.strict_errors += [f'unknown field "{path}"' for path in sorted(unknown)]
        _make_absolute(file.kubelet, Path(name).absolute().parent)
    except DecodeError as error:
        raise _cannot_load(name, f"failed to decode: {error}") from error
    except ConfigError as error:
        raise _cannot_load(name, str(error)) from error
    return file


def load_drop_ins(directory: str) -> Iterator[ConfigFile]:
    """Yield the drop-ins in lexical order of their paths, not decoded: they are patches."""
    if not Path(directory).is_dir():
        raise ConfigError(
            f'failed to merge kubelet configs: failed to walk through kubelet dropin directory "{directory}": '
            f"lstat {directory}: no such file or directory"
        )
    for path in _all_files(directory):
        if not path.endswith(".conf"):
            continue
        try:
            file = _read(path)
            if file.kubelet or not file.fake:
                file.kubelet = _kubelet_document(file.kubelet)
        except ConfigError as error:
            raise ConfigError(
                f'failed to merge kubelet configs: failed to walk through kubelet dropin directory "{directory}": '
                f"failed to load kubelet dropin file, path: {path}, error: {error}"
            ) from error
        yield file


def skipped_drop_ins(directory: str) -> list[str]:
    """Return the files that are no drop-ins, for the log."""
    return [path for path in _all_files(directory) if not path.endswith(".conf")]


def _all_files(directory: str) -> list[str]:
    """Return all files as Go's WalkDir does: entries in lexical order, subdirectories in their place."""
    paths: list[str] = []
    for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
        paths += _all_files(entry.path) if entry.is_dir(follow_symlinks=False) else [entry.path]
    return paths


def _read(name: str) -> ConfigFile:
    path = Path(name).absolute()
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"open {path}: {error.strerror.lower()}" if isinstance(error, OSError) and error.strerror else error
        raise ConfigError(f'failed to read kubelet config file "{path}", error: {reason}') from error
    if not text:
        raise ConfigError(f'kubelet config file "{path}" was empty')
    try:
        return _by_kind(name, load_documents(text))
    except ConfigError as error:
        raise ConfigError(f"failed to decode: {error}") from error


def _by_kind(name: str, parsed: Parsed) -> ConfigFile:
    """Separate our documents from kubelet's, of which, as in a kubelet, the first counts."""
    file, others = ConfigFile(name, {}, strict_errors=parsed.duplicates), []
    for document in parsed.documents:
        if isinstance(document, dict) and document.get("apiVersion") == FAKE_API:
            file.fake |= _fake_document(document)
        else:
            others.append(document)
    file.kubelet = others[0] if others else {}
    file.strict_errors += ["only the first document is read"] if len(others) > 1 else []
    return file


def _fake_document(document: Document) -> Document:
    """Return the fields of our document, decoded. It is strict: an unknown field is a ConfigError."""
    if document.get("kind") != FAKE_KIND:
        raise ConfigError(f'no kind "{document.get("kind", "")}" is registered for version "{FAKE_API}"')
    unknown: list[str] = []
    fields = {name: value for name, value in document.items() if name not in {"apiVersion", "kind"}}
    decoded = decode(FAKE, fields, unknown)
    if unknown:
        raise ConfigError(f'{FAKE_KIND}: unknown field "{unknown[0]}"')
    return decoded


def _kubelet_document(document: Any) -> Document:
    """Return the fields of a KubeletConfiguration. Raises ConfigError for another kind of document."""
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
        parent: Any = document
        for name in parents:
            parent = parent.get(name, {})
        if value := parent.get(last):
            parent[last] = os.path.normpath(directory / value) if not value.startswith("/") else value


def _cannot_load(name: str, reason: str) -> ConfigError:
    return ConfigError(
        f"failed to load kubelet config file, path: {name}, error: "
        f"failed to load Kubelet config file {name}, error {reason}"
    )
