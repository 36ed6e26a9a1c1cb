"""What a real kubelet refuses is refused here, with the same thing named; what it takes is taken."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from agent.adapters.settings import load
from agent.core.errors import ConfigError
from tests.cluster.command import completed
from tests.cluster.ports import free_ports
from tests.parity.config_case import HEADER
from tests.parity.config_file_mistakes import DROP_INS, FIELDS, WHOLE_FILES
from tests.parity.config_mistakes import FLAGS, ODD_BUT_TAKEN, Mistake
from tests.parity.configz import Answer, Machine, agreeable_api
from tests.parity.machine import as_flags, needed


@pytest.fixture(scope="module")
def machine(root: None, binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Where kubelets are asked."""
    with agreeable_api() as port, Machine(binaries, tmp_path_factory.mktemp("k"), port) as place:
        yield place


def ask_both(machine: Machine, flags: Sequence[str], config: str | None = None) -> tuple[Answer, str]:
    """How the kubelet took it, and our refusal, empty where we took it."""
    (port,) = free_ports(1)
    base = needed(machine, port)
    arguments = [f"--root-dir={machine.directory / 'root'}", f"--cert-dir={machine.directory / 'pki'}"]
    arguments.append(f"--kubeconfig={machine.kubeconfig}")
    only_ours = []
    if config is None:
        arguments += as_flags(base)
        only_ours.append("--legacy-flag-defaults")
    else:
        file = machine.directory / f"{port}.yaml"
        file.write_text(config.replace("{base}", yaml.safe_dump(base)))
        arguments.append(f"--config={file}")
    arguments += flags
    try:
        load([*only_ours, *arguments])
        ours = ""
    except ConfigError as error:
        ours = str(error)
    return machine.ask(arguments, port), ours


def check_refusal(mistake: Mistake, kubelet: Answer, ours: str) -> None:
    assert kubelet.exit_code, "the kubelet takes this"
    assert mistake.named in kubelet.said
    assert mistake.named in ours


@pytest.mark.parametrize("mistake", FLAGS, ids=[mistake.given for mistake in FLAGS])
def test_a_wrong_flag_is_refused_as_by_a_kubelet(mistake: Mistake, machine: Machine) -> None:
    check_refusal(mistake, *ask_both(machine, mistake.given.split(" ")))


@pytest.mark.parametrize("mistake", FIELDS, ids=[mistake.given.replace("\n", " ") for mistake in FIELDS])
def test_a_wrong_field_is_refused_as_by_a_kubelet(mistake: Mistake, machine: Machine) -> None:
    given = mistake.given.split("\n")
    base = {name: value for name, value in needed(machine, 0).items() if not any(g.startswith(name) for g in given)}
    base.pop("port")
    text = f"{HEADER}{yaml.safe_dump(base)}{mistake.given}\n"
    check_refusal(mistake, *ask_both(machine, [], text))


@pytest.mark.parametrize("mistake", WHOLE_FILES, ids=[mistake.named for mistake in WHOLE_FILES])
def test_a_file_of_another_kind_is_refused_as_by_a_kubelet(mistake: Mistake, machine: Machine) -> None:
    check_refusal(mistake, *ask_both(machine, [], mistake.given))


@pytest.mark.parametrize("mistake", DROP_INS, ids=[mistake.named for mistake in DROP_INS])
def test_a_wrong_drop_in_is_refused_as_by_a_kubelet(mistake: Mistake, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text(mistake.given.replace("{header}", HEADER))
    check_refusal(mistake, *ask_both(machine, [f"--config-dir={tmp_path}", "--enforce-node-allocatable=none"]))


@pytest.mark.parametrize(
    "flags",
    [
        ["--no-such-flag"],
        ["--max-pods=ten"],
        ["--node-labels=kubernetes.io/role=x"],
        ["--feature-gates=Nonsense=true"],
        ["--config=/no/such/file"],
    ],
    ids=" ".join,
)
def test_a_refusal_is_printed_as_by_a_kubelet(flags: list[str], machine: Machine) -> None:
    kubelet = completed(machine.run_words(flags))
    ours = completed([sys.executable, "-m", "agent", *flags])
    assert ours.returncode == kubelet.returncode == 1
    assert without_header(ours.stderr) == without_header(kubelet.stderr)


def without_header(text: str) -> str:
    """What is printed, without time, process and place."""
    (line,) = re.findall(
        r"^E\d{4} \d\d:\d\d:\d\d\.\d{6} [ \d]{7} \w+\.(?:go|py):\d+\] (.*)\Z", text, re.MULTILINE | re.DOTALL
    )
    return str(line)


def each_once(flags: Sequence[str]) -> list[list[str]]:
    """As few command lines as have all of the flags, and none of them twice: a kubelet that starts takes a second."""
    lines: list[dict[str, str]] = []
    for flag in flags:
        name = flag.partition("=")[0]
        line = next((line for line in lines if name not in line), None)
        if line is None:
            line = {}
            lines.append(line)
        line[name] = flag
    return [list(line.values()) for line in lines]


@pytest.mark.parametrize("flags", each_once(ODD_BUT_TAKEN), ids=" ".join)
def test_odd_flags_are_taken_as_by_a_kubelet(flags: list[str], machine: Machine) -> None:
    kubelet, ours = ask_both(machine, flags)
    assert kubelet.config is not None, f"the kubelet refuses this: {kubelet.said}"
    assert ours == ""


def test_no_odd_flag_is_left_out() -> None:
    assert sorted(flag for flags in each_once(ODD_BUT_TAKEN) for flag in flags) == sorted(ODD_BUT_TAKEN)
