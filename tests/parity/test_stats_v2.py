"""A machine with cgroup v2, recorded beside a kubelet: our figures of it have the kubelet's names and values."""

import json
from pathlib import Path

import pytest

from agent.adapters.host import LinuxHost
from agent.adapters.metrics.stats_provider import StatsProvider
from tests.parity.scrape import LACKING, Page, parsed, shape
from tests.settings import HostConfig

pytestmark = pytest.mark.anyio

RECORDED = json.loads((Path(__file__).parent / "cgroup-v2.json").read_text())
# Read a few seconds after the kubelet had measured, on a slow machine that was busy
_LATER = 0.1
# Of the disk that the files lie on now
_ELSEWHERE = ("container_fs_limit", "container_fs_usage", "container_fs_inodes")


@pytest.fixture
def stats(tmp_path: Path) -> StatsProvider:
    """Ours, of the recorded machine."""
    for name in RECORDED["folders"]:
        (tmp_path / name).mkdir(parents=True)
    for name, text in RECORDED["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, target in RECORDED["links"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(target)
    host = LinuxHost(HostConfig(root=str(tmp_path), root_dir="/data"))
    return StatsProvider(host=host, node_name="vm")


async def test_the_summary_has_the_same_keys(stats: StatsProvider) -> None:
    (ours, pods), kubelet = await stats.summary(only_cpu_and_memory=False), RECORDED["summary"]
    ours["pods"] = list(pods)
    ours["node"]["rlimit"]["maxpid"] = kubelet["node"]["rlimit"]["maxpid"]  # read with the rest of the machine
    assert shape(ours) == shape(kubelet)


async def test_the_summary_has_the_same_values(stats: StatsProvider) -> None:
    ours, kubelet = (await stats.summary(only_cpu_and_memory=False))[0]["node"], RECORDED["summary"]["node"]
    assert ours["memory"]["workingSetBytes"] == pytest.approx(kubelet["memory"]["workingSetBytes"], rel=0.01)
    assert ours["memory"]["availableBytes"] == pytest.approx(kubelet["memory"]["availableBytes"], rel=0.01)
    assert ours["cpu"]["usageCoreNanoSeconds"] == pytest.approx(kubelet["cpu"]["usageCoreNanoSeconds"], rel=_LATER)
    assert ours["cpu"]["psi"]["some"]["total"] == pytest.approx(kubelet["cpu"]["psi"]["some"]["total"], rel=0.3)
    assert ours["swap"]["swapUsageBytes"] == kubelet["swap"]["swapUsageBytes"]
    (own, _), (theirs, _) = ours["systemContainers"], kubelet["systemContainers"]
    assert own["memory"]["workingSetBytes"] == pytest.approx(theirs["memory"]["workingSetBytes"], rel=0.01)


async def test_the_pages_have_the_same_names_types_texts_and_labels(stats: StatsProvider) -> None:
    for page, recorded in ((await stats.resource(), "resource"), (await stats.cadvisor(), "cadvisor")):
        ours, kubelet = parsed(page.decode()), parsed("\n".join(RECORDED[recorded]))
        assert ours.families == {name: said for name, said in kubelet.families.items() if name not in LACKING}
        assert _root(ours) == {name for name in _root(kubelet) if name.partition("{")[0] not in LACKING}
        assert len(ours.numbers) == len([line for line in page.splitlines() if not line.startswith(b"#")])


async def test_the_numbers_are_the_same(stats: StatsProvider) -> None:
    ours, kubelet = parsed((await stats.cadvisor()).decode()).numbers, parsed("\n".join(RECORDED["cadvisor"])).numbers
    counted = {
        name for name in _root(Page({}, ours)) if name.startswith(("container_blkio", "container_fs", "container_spec"))
    }
    same = {name for name in counted if not name.startswith(_ELSEWHERE)}
    assert len(same) > 40
    assert {name: ours[name].value for name in same} == {name: kubelet[name].value for name in same}


def _root(page: Page) -> set[str]:
    """The numbers of the root cgroup; the others carry names that only the machine itself knows."""
    return {name for name in page.numbers if 'id="/"' in name}
