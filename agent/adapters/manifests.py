"""The manifest files of static pods."""

import asyncio
import json
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent.adapters.go_yaml import load_private
from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.labels import subdomain_faults
from agent.core.model import Object
from agent.core.pods.static import Manifest, manifest_fault

log = logging.getLogger(__name__)

_LONGEST_NAME = 253
_MOST_BYTES = 2 * 2**20  # etcd takes 1.5 MiB for an object


class ManifestFiles:
    """One file, or all of a folder whose names do not begin with a dot."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def read(self) -> Sequence[Manifest]:
        """Return the pods of the files; a file that holds no valid pod is logged and left out."""
        return await asyncio.to_thread(lambda: list(self._manifests()))

    def _manifests(self) -> Iterator[Manifest]:
        for file in self._files():
            try:
                pod = _as_json(load_private(manifest_text(file)))  # which repeats nothing: a password may be in it
            except (OSError, ValueError, TypeError, RecursionError, ConfigException) as error:
                log.error("Could not process manifest file", {"err": error, "path": str(file)})
                continue
            if fault := manifest_fault(pod) or _name_fault(pod["metadata"]):
                log.error("Could not process manifest file", {"err": fault, "path": str(file)})
            else:
                yield Manifest(str(file), pod)

    def _files(self) -> Sequence[Path]:
        if not self._path.is_dir():
            return [self._path] if self._path.is_file() else []
        return sorted(file for file in self._path.iterdir() if file.is_file() and not file.name.startswith("."))


def manifest_text(file: Path) -> str:
    """Read a file without ever blocking. Raises ValueError if it is no regular file, or too large."""
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("it is no regular file")
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
    return content.decode()


def _name_fault(metadata: Object) -> str:
    """Return why a pod cannot have its name or namespace, which become parts of a path; empty if it can."""
    for name in (metadata["name"], metadata.get("namespace") or "default"):
        if not isinstance(name, str) or len(name) > _LONGEST_NAME or subdomain_faults(name):
            return f"its name or namespace makes no sense: {str(name)[:100]!r}"
    return ""


def _as_json(value: object) -> Any:
    """Convert YAML to JSON, as kubelet does: keys are strings, and there is nothing that JSON lacks."""
    return json.loads(json.dumps(value, default=str, allow_nan=False, ensure_ascii=False).encode())
