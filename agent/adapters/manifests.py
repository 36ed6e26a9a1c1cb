"""Files that ask for static pods."""

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agent.adapters.kubeconfig import parsed
from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.pods.static import Manifest, manifest_fault

log = logging.getLogger(__name__)


class ManifestFiles:
    """One file, or all of a folder whose names do not begin with a dot."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def read(self) -> Sequence[Manifest]:
        """The pods that the files ask for; a file that makes no sense is told of and left out."""
        return await asyncio.to_thread(lambda: list(self._manifests()))

    def _manifests(self) -> Iterator[Manifest]:
        for file in self._files():
            try:
                pod = _as_json(parsed(file.read_text()))  # which repeats nothing: a password may be in it
            except (OSError, ValueError, TypeError, RecursionError, ConfigException) as error:
                log.error("Could not process manifest file", {"err": error, "path": str(file)})
                continue
            if fault := manifest_fault(pod):
                log.error("Could not process manifest file", {"err": fault, "path": str(file)})
            else:
                yield Manifest(str(file), pod)

    def _files(self) -> Sequence[Path]:
        if not self._path.is_dir():
            return [self._path] if self._path.is_file() else []
        return sorted(file for file in self._path.iterdir() if file.is_file() and not file.name.startswith("."))


def _as_json(value: object) -> Any:
    """As kubelet reads YAML: as the JSON that it stands for, with strings for keys, and nothing that JSON lacks."""
    return json.loads(json.dumps(value, default=str, allow_nan=False, ensure_ascii=False).encode())
