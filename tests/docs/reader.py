"""A reader who types the blocks of a page, one after another, and compares what comes out with what the page shows."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from tests.cluster.waiting import eventually
from tests.docs.page import ROOT, Block

_PATIENCE_SECONDS = 240.0
# Exported variables last from block to block, as in a terminal.
_SHELL = """[ ! -e {exports} ] || . {exports}
set -e
trap 'export -p > {exports}' EXIT
{commands}"""
# `fake-kubelet` as the page has it, on ports and in directories of its own. Later flags win.
_COMMAND = """#!/bin/sh
case "$1" in
join) exec {command} "$@" {apart} --kubeconfig={folder}/joined.conf --client-ca-file={folder}/ca.crt \
  --bootstrap-kubeconfig={folder}/joining.conf ;;
demo|fleet|install|uninstall|completion|--version|--help) exec {command} "$@" ;;
*) exec {command} {apart} "$@" ;;
esac
"""


class Reader:
    """Types blocks in a directory of its own; ends what it has started when it goes."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], replacements: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._environment = {"HOME": str(folder), "TMPDIR": str(folder), **environment}
        self._replacements = replacements or {}
        self._started: list[subprocess.Popen[bytes]] = []
        self._staying: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            _end(process)

    def do(self, block: Block) -> None:
        """Write the file, or type the commands until everything that the page shows has come."""
        if block.file_name:
            (self._folder / block.file_name).write_text(self._own(block.text))
        elif "stays" in block.words:
            if self._staying:
                _end(self._staying)
            process = self._staying = self._type(block)
            eventually(lambda: self._is_kept(block, None if process.poll() is None else process.returncode))
        elif block.promises:
            eventually(lambda: self._is_kept(block, self._type(block).wait(_PATIENCE_SECONDS)), every=1.5)
        else:
            self._is_kept(block, self._type(block).wait(_PATIENCE_SECONDS))

    def _type(self, block: Block) -> subprocess.Popen[bytes]:
        exports = shlex.quote(str(self._folder / ".exports"))
        with self._output(block).open("wb") as output:  # a pipe would not end before those who stay do
            process = subprocess.Popen(
                ["bash", "-c", _SHELL.format(exports=exports, commands=self._own(block.text))],
                cwd=self._folder,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def _is_kept(self, block: Block, code: int | None) -> bool:
        output = self._output(block).read_text(errors="replace")
        missing = [promise for promise in map(self._own, block.promises) if not shows(output, promise)]
        said = f"line {block.line}:\n{block.text}\nended with {code}, and printed\n{output}"
        assert not missing, f"there is no {missing} after {said}"
        assert code is None or (code != 0) == ("fails" in block.words), said
        return True

    def _own(self, text: str) -> str:
        """The text with addresses, ports and hashes of this run in the place of those of the page."""
        for example, real in self._replacements.items():
            text = text.replace(example, real)
        return text

    def _output(self, block: Block) -> Path:
        return self._folder / f".output-{block.line}"


def shows(output: str, promise: str) -> bool:
    """Whether some line of the output has the words of the promise, in their order; … stands for anything."""
    words = ".*".join(r"\s+".join(map(re.escape, part.split())) for part in promise.split("…"))
    return any(re.search(words, line) for line in output.splitlines())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the commands of a block, and what they have left in the background."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(AssertionError):
            eventually(lambda: process.poll() is not None and not _is_running(process.pid), within=20)


def _is_running(group: int) -> bool:
    """Whether a process of the group has not ended."""
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


def make_tools(folder: Path, kubectl: Path, apart: list[str]) -> Path:
    """A directory for the PATH: kubectl, python, and a fake-kubelet that stays apart from others on this machine."""
    tools = folder / ".bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(kubectl)
    command = shlex.join(["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "agent"])
    scripts = {
        "python": f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} "$@"\n',
        "fake-kubelet": _COMMAND.format(command=command, apart=shlex.join(apart), folder=folder),
    }
    for name, script in scripts.items():
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    return tools
