"""The same flags and files give the same KubeletConfiguration in a real kubelet and here, field by field."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import yaml

from agent.adapters.settings import effective
from agent.cli.config_show import settings_json
from agent.core.errors import ConfigError
from tests.cluster.command import run
from tests.cluster.ports import free_ports
from tests.parity.config_case import HEADER, ConfigCase
from tests.parity.config_cases import CASES
from tests.parity.configz import Answer, Machine, agreeable_api
from tests.parity.machine import as_flags, needed


@pytest.fixture(scope="module")
def machine(root: None, binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A place to run kubelets."""
    with agreeable_api() as port, Machine(binaries, tmp_path_factory.mktemp("k"), port) as place:
        yield place


def _both(machine: Machine, case: ConfigCase) -> tuple[Answer, Any]:
    (port,) = free_ports(1)
    folder = Path(mkdtemp(prefix="case-", dir=machine.directory))
    (folder / "drop-ins").mkdir()
    arguments = _arguments(machine, case, folder, port)
    only_ours = [*_in_place(case.only_ours, machine), *(["--legacy-flag-defaults"] if case.config is None else [])]
    try:
        ours = json.loads(settings_json(effective([*arguments, *only_ours])))["kubeletconfig"]
    except ConfigError as error:
        ours = {"refused": str(error)}
    return machine.ask(arguments, port), ours


def _arguments(machine: Machine, case: ConfigCase, folder: Path, port: int) -> list[str]:
    """The case's own, and what a kubelet needs on this machine: in the file, or as flags where there is none."""
    base = needed(machine, port)
    arguments = [f"--root-dir={machine.directory / 'root'}", f"--cert-dir={machine.directory / 'pki'}"]
    arguments += [f"--kubeconfig={machine.kubeconfig}"]
    if case.config is None:
        arguments += as_flags(base)
    else:
        file = folder / "config.yaml"
        file.write_text(_filled(case, base, machine))
        arguments.append(f"--config={file}")
    if case.drop_ins:
        # kubelet forgets an empty enforceNodeAllocatable when it merges drop-ins, and then needs cgroups
        drop_ins = {"00-machine.conf": "enforceNodeAllocatable: [none]", **case.drop_ins}
        for name, text in drop_ins.items():
            path = folder / "drop-ins" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(HEADER + _placed(text, machine))
        arguments.append(f"--config-dir={folder / 'drop-ins'}")
    return [*arguments, *_in_place(case.flags, machine)]


def _filled(case: ConfigCase, base: Mapping[str, Any], machine: Machine) -> str:
    """The case's file, completed with what this machine needs."""
    text = _placed(case.config or "", machine)
    if "{base}" in text:
        return text.replace("{base}", json.dumps(base)[1:-1])
    first, separator, rest = text.partition("\n---")
    given = yaml.safe_load(first) or {}
    unset = {name for name in base if not given.get(name)}
    kept = [line for line in first.splitlines() if line.partition(":")[0] not in unset]
    needed = yaml.safe_dump({name: base[name] for name in base if name in unset})
    header = "" if case.as_it_is else HEADER
    return "\n".join([header, *kept, needed]) + separator + rest


def _in_place(flags: Any, machine: Machine) -> list[str]:
    return [_placed(flag, machine) for flag in flags]


def _placed(text: str, machine: Machine) -> str:
    places = {"{dir}": machine.directory, "{ca}": machine.ca_file, "{runtime}": machine.runtime_endpoint}
    for name, place in places.items():
        text = text.replace(name, str(place))
    return text


def _kubeadms(binaries: Path) -> str:
    """The KubeletConfiguration that this version of kubeadm writes."""
    command = [str(binaries / "kubeadm"), "config", "print", "init-defaults"]
    printed = run([*command, "--component-configs=KubeletConfiguration"])
    written = next(text for text in printed.split("---\n") if "kind: KubeletConfiguration" in text)
    return written.replace("/etc/kubernetes/pki/ca.crt", "{ca}")  # which this machine need not have


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_effective_configuration_is_a_kubelets(case: ConfigCase, machine: Machine) -> None:
    check_equal(*_both(machine, case))


def test_what_kubeadm_writes_is_understood_as_by_a_kubelet(machine: Machine, binaries: Path) -> None:
    check_equal(*_both(machine, ConfigCase("kubeadm", config=_kubeadms(binaries), as_it_is=True)))


def check_equal(kubelet: Answer, ours: Any) -> None:
    assert kubelet.config is not None, f"the kubelet did not start: {kubelet.said}"
    theirs, own = dict(_flat(kubelet.config)), dict(_flat(ours))
    assert {path: (theirs.get(path), own.get(path)) for path in theirs | own if theirs.get(path) != own.get(path)} == {}


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value with its path; an empty object is a value too."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from _flat(child, f"{path}.{key}")
    else:
        yield path, value


def test_the_matrix_is_as_large_as_promised() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 40
