"""One pod that makes no sense does not keep the others from being seen."""

import logging

import pytest

from agent.adapters.kube_pods import PodSelection
from agent.ports import Change, Listed

pytestmark = pytest.mark.anyio


def pod(name, version, **fields):
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "pause"}]}} | fields


def odd(version):
    return pod("odd", version, spec={"containers": "none"})


class Source:
    """What an API server tells, once."""

    def __init__(self, *changes):
        self.objects, self.changes = [pod("good", "1"), odd("2")], changes

    async def list(self):
        return Listed(self.objects, "3")

    async def watch(self, version, *, seconds):
        for change in self.changes:
            yield change


async def watched(selection):
    return [(kind, obj["metadata"]["resourceVersion"]) async for kind, obj in selection.watch("3", seconds=1)]


async def test_a_list_leaves_it_out_and_tells_of_it_once(caplog):
    selection = PodSelection(Source())
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            objects, version = await selection.list()
            assert ([one["metadata"]["name"] for one in objects], version) == (["good"], "3")
    (record,) = caplog.records
    assert record.args["pod"] == "odd"


async def test_a_watch_goes_on_after_it_and_tells_when_it_is_gone(caplog):
    changes = [Change("ADDED", odd("4")), Change("MODIFIED", odd("5")), Change("ADDED", pod("good", "6"))]
    selection = PodSelection(Source(*changes, Change("DELETED", odd("7"))))
    assert await watched(selection) == [("BOOKMARK", "4"), ("BOOKMARK", "5"), ("ADDED", "6"), ("DELETED", "7")]
    assert len(caplog.records) == 1


async def test_one_that_makes_sense_again_is_seen_again(caplog):
    mended = Change("MODIFIED", pod("odd", "5"))
    selection = PodSelection(Source(Change("ADDED", odd("4")), mended, Change("MODIFIED", odd("6"))))
    assert await watched(selection) == [("BOOKMARK", "4"), ("MODIFIED", "5"), ("BOOKMARK", "6")]
    assert len(caplog.records) == 2
