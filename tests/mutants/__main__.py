"""Shows that the fast tests notice every known mistake: `python -m tests.mutants [NAME…]`, or `make mutants`.

Works on copies of the tree, one for each worker, and prints for each mutant which test caught it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from tests.mutants import fleet, node, pods, serving
from tests.mutants.mutant import Mutant, StaleError

ROOT = Path(__file__).parents[2]
MUTANTS = (*node.MUTANTS, *serving.MUTANTS, *pods.MUTANTS, *fleet.MUTANTS)
FAST = ("-m", "not real and not root and not slow", "tests/unit", "tests/contract")  # as `make test-fast`
QUIET = ("-q", "--no-header", "--tb=no", "-rfE", "--timeout=120", "-p", "no:cacheprovider")
REPEATABLE = ("-p", "no:randomly", "--hypothesis-seed=0")
_PATIENCE_SECONDS = 300.0  # some mutants go round in circles, and hypothesis repeats what pytest-timeout has ended
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)


class Broken(Exception):
    """The tests could not be run, so they show nothing; the message has their output."""


class Copy:
    """A copy of the tree that mutants are put in, one at a time."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "tree"
        shutil.copytree(ROOT, self._root, ignore=shutil.ignore_patterns(".*", "__pycache__"))

    def check_import(self) -> None:
        """Make sure that the tests import the agent of the copy, not the one that is installed."""
        imported = self._python("-P", "-c", "import agent; print(agent.__file__)").stdout.strip()
        if Path(imported) != self._root / "agent" / "__init__.py":
            raise Broken(f"the tests of {self._root} would import {imported}")

    def failure(self, *words: str) -> str | None:
        """The first test that fails; None where all pass."""
        try:
            ended = self._python("-m", "pytest", "-x", *QUIET, *words)
        except subprocess.TimeoutExpired:
            return f"(they do not end within {_PATIENCE_SECONDS:.0f} s)"
        found = _FAILED.search(ended.stdout)
        if ended.returncode and not found:
            raise Broken(f"pytest {' '.join(words)}:\n{ended.stdout}{ended.stderr}")
        return found[1] if found else None

    def catcher(self, mutant: Mutant) -> str | None:
        """The test that notices the mutant, of those nearest to it or of all fast ones; None where none does."""
        with self._with(mutant):
            stages = ([str(path)] for path in self._near(mutant))
            found = (self.failure(*REPEATABLE, *stage) for stage in (*stages, FAST))
            return next(filter(None, found), None)

    def _near(self, mutant: Mutant) -> Iterator[Path]:
        """The test module that mirrors the mutant's, where there is one, and then all that stand beside it."""
        module = Path("tests/unit/core", mutant.module)
        mirror = module.with_name(f"test_{module.name}")
        if (self._root / mirror).exists():
            yield mirror
        yield mirror.parent

    @contextmanager
    def _with(self, mutant: Mutant) -> Iterator[None]:
        path, source = mutant.path(self._root), mutant.source(self._root)
        original = path.read_text()
        try:
            self._write(path, source)
            yield
        finally:
            self._write(path, original)

    @staticmethod
    def _write(path: Path, source: str) -> None:
        path.write_text(source)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()  # Python tells sources of one size and second not apart

    def _python(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(self._root)}
        argv = [sys.executable, *words]
        return subprocess.run(
            argv,
            cwd=self._root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )


def main(names: Sequence[str]) -> int:
    """Try the mutants of these names, or all; the exit code is 1 where one survives."""
    if unknown := set(names) - {mutant.name for mutant in MUTANTS}:
        raise SystemExit(f"there is no mutant {sorted(unknown)}")
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    try:
        for mutant in chosen:
            mutant.source(ROOT)
        with TemporaryDirectory(prefix="mutants-") as folder:
            survivors = _try_all(chosen, Path(folder))
    except (StaleError, Broken) as error:
        raise SystemExit(str(error)) from error
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    return 1 if survivors else 0


def _try_all(mutants: Sequence[Mutant], folder: Path) -> list[str]:
    """The names of those that survive."""
    workers = os.cpu_count() or 1
    copies = [Copy(folder / str(number)) for number in range(workers)]
    for copy in copies:
        copy.check_import()
    if failed := copies[0].failure("-n", str(workers), *FAST):
        raise Broken(f"without any mutant, this fails: {failed}")
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> str | None:
        copy = free.get()
        try:
            return copy.catcher(mutant)
        finally:
            free.put(copy)

    survivors = []
    with ThreadPoolExecutor(workers) as pool:
        for mutant, caught_by in zip(mutants, pool.map(attempt, mutants), strict=True):
            print(f"{mutant.module:20} {mutant.name:60} {caught_by or 'SURVIVED'}", flush=True)
            if caught_by is None:
                survivors.append(mutant.name)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
