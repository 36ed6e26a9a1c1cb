"""The table of flags beside the real `kubelet --help`, so that another version of Kubernetes shows what is new."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from agent.adapters.settings.defaults import without_file
from agent.adapters.settings.effective import effective
from agent.adapters.settings.table import FLAGS
from agent.adapters.settings.zpages import zpages
from agent.cli.grammar import default_text
from agent.core.kubelet_data.gates import GATES
from tests.cluster.command import completed, run

_LINE = re.compile(r"^ +(?:-\w, )?--(?P<name>[\w-]+)(?: (?P<type>\S+))?  +(?P<text>.*)$")
_DEFAULT = re.compile(r"\(default (.*?)\)(?: \(DEPRECATED|$)")
_BOOL_TYPES = {None, "RuntimeDefault", "version[=true]"}  # a word in backticks in a usage becomes the type
_UNSTABLE = {"ALPHA", "BETA"}  # help does not list the others
_GIVEN = (
    *(
        "--register-with-taints=a=b:NoSchedule,c:NoExecute",
        "--vmodule=a=1,b=2",
        "--cluster-dns=a,b",
        "--node-labels=b=1,a",
    ),
    *("--reserved-memory=1:memory=2Gi;0:memory=1024Mi,hugepages-2Mi=2Mi", "--kube-reserved=memory=1024Mi,cpu=1"),
    *(
        "--feature-gates=NodeSwap=true,ContextualLogging=false",
        "--eviction-hard=nodefs.available<5%,memory.available<1Gi",
    ),
    *(
        "--cpu-manager-policy-options=a=b",
        "--qos-reserved=memory=10%",
        "--sync-frequency=90s",
        "--seccomp-default",
        "-v=1",
    ),
)


class Shown(NamedTuple):
    """A flag as the kubelet's help shows it."""

    takes_value: bool
    default: str
    deprecated: bool


@pytest.fixture(scope="module")
def shown(binaries: Path) -> Mapping[str, Shown]:
    """The flags of the real kubelet."""
    entries = re.split(r"\n(?= +(?:-\w, )?--)", kubelet_help(binaries).partition("Flags:\n")[2])
    found = {}
    for entry in entries:
        match = _LINE.match(entry.replace("\n", " "))
        assert match, entry
        default = _DEFAULT.search(match["text"])
        bare = default[1].strip('"').strip("[]") if default else ""
        found[match["name"]] = Shown(match["type"] not in _BOOL_TYPES, bare, "DEPRECATED:" in entry)
    return found


def kubelet_help(binaries: Path) -> str:
    """What the real kubelet prints."""
    return run([str(binaries / "kubelet"), "--help"])


def test_the_feature_gates_that_help_lists_are_ours(binaries: Path) -> None:
    listed = re.findall(r"(\w+)=true\|false \((ALPHA|BETA) - default=(true|false)\)", kubelet_help(binaries))
    ours = {(name, gate.stage, str(gate.default).lower()) for name, gate in GATES.items() if gate.stage in _UNSTABLE}
    assert len(listed) > 100
    assert ours == set(listed)


def test_every_flag_of_a_kubelet_is_known_and_no_other_is_called_kubelets(shown: Mapping[str, Shown]) -> None:
    assert {flag.name for flag in FLAGS.values() if flag.is_kubelets} == set(shown)


def test_each_flag_takes_a_value_where_a_kubelets_does(shown: Mapping[str, Shown]) -> None:
    ours = {name: FLAGS[name].kind not in {"bool", "version"} for name in shown}
    assert ours == {name: flag.takes_value for name, flag in shown.items()}


def test_each_flag_has_a_kubelets_default_if_legacy_ones_are_asked_for(shown: Mapping[str, Shown]) -> None:
    unset = without_file()
    ours = {name: default_text(FLAGS[name], unset) for name in shown}
    assert ours == {name: flag.default for name, flag in shown.items()}


def test_what_a_kubelet_deprecates_is_deprecated(shown: Mapping[str, Shown]) -> None:
    ours = {name for name in shown if FLAGS[name].deprecated}
    assert ours == {name for name, flag in shown.items() if flag.deprecated}


def test_removed_flags_are_really_gone(shown: Mapping[str, Shown]) -> None:
    assert {flag.name for flag in FLAGS.values() if flag.removed} & set(shown) == set()


@pytest.mark.parametrize("given", [("-v=1",), _GIVEN], ids=["nothing", "something of each kind"])
def test_flags_are_told_as_a_kubelet_logs_them(binaries: Path, given: Sequence[str]) -> None:
    wrong = "--max-pods=-1"  # flags are logged, and then the kubelet ends
    done = completed([str(binaries / "kubelet"), *given, wrong])
    logged = dict(re.findall(r'FLAG: --([\w-]+)="(.*)"$', done.stderr, re.MULTILINE))
    assert logged.pop("max-pods") == "-1"
    ours = zpages(effective(["--legacy-flag-defaults", *given])).flagz
    assert {name: value for name, value in ours.items() if name != "max-pods"} == logged
