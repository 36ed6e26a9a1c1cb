"""`make sync-kubelet`: write agent/core/kubelet_data from the Go code of the kubelet that go.mod pins."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.build import KUBELET_DATA, NoControlPlane, built
from tests.cluster.command import run

FOLDER = Path(__file__).parents[2] / "agent/core/kubelet_data"


def modules(program: Path) -> dict[str, str]:
    """The text of each module by its file name."""
    data = json.loads(run([str(program)]))
    source = f"Written by `make sync-kubelet` from Kubernetes {data['kubernetes']}; do not edit."
    texts = {
        "version.py": ("The kubelet whose behaviour is reproduced.", _version(data)),
        "gates.py": ("The feature gates of the kubelet.", _gates(data)),
        "configuration.py": ("KubeletConfiguration v1beta1: its structs and defaults.", _configuration(data)),
        "flags.py": ("The flags of the kubelet.", _flags(data)),
        "cadvisor.py": (f"The metrics of cAdvisor {data['cadvisor']}.", _metrics(data)),
    }
    return {name: _formatted(name, [f'"""{title}\n\n{source}\n"""', *body]) for name, (title, body) in texts.items()}


def _formatted(name: str, lines: Iterable[str]) -> str:
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(FOLDER / name), "-"]
    return run(ruff, stdin="\n".join(lines))


def _version(data: Mapping[str, Any]) -> Iterator[str]:
    yield f"KUBELET_VERSION = {data['kubernetes']!r}"


def _gates(data: Mapping[str, Any]) -> Iterator[str]:
    """Gates of one stage, default and lock share one object."""
    yield "from agent.core.kubelet_data import Gate"
    names = {name: _constant(gate) for name, gate in data["gates"].items()}
    gates = {names[name]: gate for name, gate in data["gates"].items()}
    for name, gate in sorted(gates.items()):
        yield f"{name} = Gate({gate['stage']!r}, {gate['default']}, {gate['locked']})"
    yield from _table("GATES: dict[str, Gate]", sorted(names.items()))
    needed = {name: repr(tuple(others)) for name, others in data["dependencies"].items()}
    yield from _table("DEPENDENCIES: dict[str, tuple[str, ...]]", sorted(needed.items()))
    yield '"""What a gate needs to be on, to be on itself."""'


def _constant(gate: Mapping[str, Any]) -> str:
    return f"_{gate['stage'] or 'STABLE'}_{'ON' if gate['default'] else 'OFF'}{'_LOCKED' if gate['locked'] else ''}"


def _configuration(data: Mapping[str, Any]) -> Iterator[str]:
    yield "from agent.core.kubelet_data import ConfigField"
    yield "STRUCTS: dict[str, dict[str, ConfigField]] = {"
    for name, fields in sorted(data["structs"].items()):
        rows = ((field["name"], _row(field, "type", "default", "always")) for field in fields)
        yield from (f"{name!r}: {{", *_rows(rows), "},")
    yield "}"
    yield '"""By the name in Go: the fields in the order in which Go prints them."""'
    legacy = ((path, repr(value)) for path, value in sorted(data["legacyDefaults"].items()))
    yield from _table("WITHOUT_FILE: dict[str, object]", legacy)
    yield '"""The defaults that are other ones in a kubelet without --config."""'


def _flags(data: Mapping[str, Any]) -> Iterator[str]:
    yield "from agent.core.kubelet_data import KubeletFlag"
    rows = {name: _row(flag, "kind", "field", "default", "deprecated") for name, flag in data["flags"].items()}
    yield from _table("KUBELET_FLAGS: dict[str, KubeletFlag]", sorted(rows.items()))


def _metrics(data: Mapping[str, Any]) -> Iterator[str]:
    yield "from agent.core.kubelet_data import Metric"
    rows = {name: _row(metric, "type", "help") for name, metric in data["metrics"].items()}
    yield from _table("METRICS: dict[str, Metric]", sorted(rows.items()))


def _row(values: Mapping[str, Any], *names: str) -> str:
    return repr(tuple(tuple(values[name]) if isinstance(values[name], list) else values[name] for name in names))


def _table(name: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (f"{name} = {{", *_rows(rows), "}")


def _rows(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"{key!r}: {value}," for key, value in rows)


def main() -> int:
    """Write the modules, or say why that is not possible."""
    try:
        program = built(KUBELET_DATA) / "kubeletdata"
    except NoControlPlane as reason:
        print(f"no kubelet to take its data from: {reason}", file=sys.stderr)
        return 1
    for name, text in modules(program).items():
        (FOLDER / name).write_text(text)
        print(f"wrote {FOLDER / name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
