"""What `fake-kubelet --help` and `config check` cost in CPU, start of the interpreter included.

`python -m tests.bench.startup` prints a table and fails where a budget is broken.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Sequence

_RUNS = 7
_BUDGET_MS = {"--help": 300.0, "--version": 300.0, "config check": 400.0}


def cpu_ms(arguments: Sequence[str]) -> float:
    """User and system time of one run, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "agent", *arguments], check=True, stdout=subprocess.DEVNULL, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    """Print the least and the middle of several runs; the least is what the machine allows."""
    broken = 0
    print(f"{'fake-kubelet':<14} {'least ms':>9} {'median ms':>10} {'budget ms':>10}")
    for command, budget in _BUDGET_MS.items():
        runs = sorted(cpu_ms(command.split()) for _ in range(_RUNS))
        print(f"{command:<14} {runs[0]:9.0f} {runs[_RUNS // 2]:10.0f} {budget:10.0f}")
        broken += runs[0] > budget
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
