"""One pod that makes no sense does not keep the others from being seen."""

import json
import logging

import pytest

from agent.adapters.answers import TooLarge, page, watch_event
from agent.adapters.kube import KubePods, PodSelection
from agent.ports import Unavailable

pytestmark = pytest.mark.anyio


def pod(name, version, **fields):
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "pause"}]}} | fields


def odd(version):
    return pod("odd", version, spec={"containers": "none"})


class ApiConnection:
    """What an API server says, page by page and event by event."""

    def __init__(self, *events, items=()):
        self.items, self.events = items, events
        self.asked = []

    async def page(self, path, query):
        self.asked.append(dict(query))
        content = self.answer(dict(query))
        return page(content), len(content)

    def answer(self, query):
        return json.dumps({"metadata": {"resourceVersion": "3"}, "items": [*self.items]}).encode()

    async def call(self, method, path, body, content_type=""):
        return json.loads(json.dumps(self.items[0]))

    async def stream(self, path, query, *, seconds):
        for kind, obj in self.events:
            yield watch_event(json.dumps({"type": kind, "object": obj}).encode())


async def watched(selection):
    return [(kind, obj["metadata"]["resourceVersion"]) async for kind, obj in selection.watch("3", seconds=1)]


async def names(selection):
    return [one["metadata"]["name"] for one in (await selection.list()).objects]


async def test_pods_come_without_their_managed_fields():
    managed = pod("a", "4")
    managed["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    connection = ApiConnection(("ADDED", managed), items=[managed])
    selection, api = PodSelection(connection, "n1"), KubePods(connection)
    seen = [
        *(await selection.list()).objects,
        *[obj async for _, obj in selection.watch("3", seconds=1)],
        await api.create(pod("a", "")),
        await api.patch_status("ns", "a", {}),
    ]
    assert [one["metadata"] for one in seen] == [pod("a", "4")["metadata"]] * 4


async def test_a_list_leaves_it_out_and_tells_of_it_once(caplog):
    selection = PodSelection(ApiConnection(items=[pod("good", "1"), odd("2")]), "n1")
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert await names(selection) == ["good"]
    (record,) = caplog.records
    assert record.args["pod"] == "odd"


@pytest.mark.parametrize(
    "stranger",
    [
        5,
        None,
        [],
        {},
        {"metadata": {}},
        pod("a/b", "1"),
        pod("no-version", ""),
        pod("late", "1", metadata={"name": "late", "namespace": "ns", "uid": "u", "resourceVersion": ["1"]}),
        pod("deep", "1", x=json.loads("[" * 300 + "]" * 300)),
        pod("many", "1", x=[{}] * 150_000),
        pod("never", "1", status={"startTime": "2026-01-01T00:00:00z"}),
    ],
    ids=["number", "nothing", "list", "empty", "nobody", "slash", "no version", "odd version", "deep", "many", "time"],
)
async def test_whatever_stands_among_the_pods_costs_no_other_pod(stranger, caplog):
    connection = ApiConnection(("ADDED", stranger), ("MODIFIED", pod("good", "5")), items=[stranger, pod("good", "1")])
    selection = PodSelection(connection, "n1")
    assert await names(selection) == ["good"]
    assert (await watched(selection))[-1] == ("MODIFIED", "5")
    assert len(caplog.records) == 1


async def test_a_watch_goes_on_after_it_and_tells_when_it_is_gone(caplog):
    changes = [("ADDED", odd("4")), ("MODIFIED", odd("5")), ("ADDED", pod("good", "6")), ("DELETED", odd("7"))]
    selection = PodSelection(ApiConnection(*changes), "n1")
    assert await watched(selection) == [("BOOKMARK", "4"), ("BOOKMARK", "5"), ("ADDED", "6"), ("DELETED", "7")]
    assert len(caplog.records) == 1


async def test_one_that_makes_sense_again_is_seen_again(caplog):
    changes = [("ADDED", odd("4")), ("MODIFIED", pod("odd", "5")), ("MODIFIED", odd("6"))]
    assert await watched(PodSelection(ApiConnection(*changes), "n1")) == [
        ("BOOKMARK", "4"),
        ("MODIFIED", "5"),
        ("BOOKMARK", "6"),
    ]
    assert len(caplog.records) == 2


class Endless(ApiConnection):
    """A list that always says there is more of it."""

    def __init__(self, token):
        super().__init__()
        self.token = token

    def answer(self, query):
        number = len(self.asked)
        metadata = {"resourceVersion": "3", "continue": self.token or f"t{number}"}
        return json.dumps({"metadata": metadata, "items": [pod(f"p{number}", "1")]}).encode()


@pytest.mark.parametrize("token", ["", "again", "x" * 10_000])
async def test_a_list_without_an_end_is_no_list(token):
    connection = Endless(token)
    with pytest.raises(Unavailable, match="has no end"):
        await PodSelection(connection, "n1").list()
    assert len(connection.asked) <= 1000


class Large(ApiConnection):
    """Pods of which no more than three fit into an answer."""

    def answer(self, query):
        start, limit = int(query.get("continue", "0")), int(query["limit"])
        if limit > 3:
            raise TooLarge("the answer is larger than 5 bytes")
        end = start + limit
        metadata = {"resourceVersion": "3"} | ({"continue": str(end)} if end < len(self.items) else {})
        return json.dumps({"metadata": metadata, "items": self.items[start:end]}).encode()


async def test_pods_that_are_large_come_in_smaller_pages():
    connection = Large(items=[pod(f"p{number}", "1") for number in range(10)])
    assert await names(PodSelection(connection, "n1")) == [f"p{number}" for number in range(10)]
    assert [query["limit"] for query in connection.asked] == ["100", "50", "25", "12", "6", "3", "3", "3", "3"]


def large(number):
    return pod(f"p{number}", "1", x="y" * 3_000_000)


async def test_pods_for_which_there_is_no_room_are_left_out(caplog):
    selection = PodSelection(
        ApiConnection(*(("ADDED", large(number)) for number in range(60)), ("ADDED", pod("p0", "9"))), "n1"
    )
    kinds = [kind for kind, _ in await watched(selection)]
    taken = kinds.count("ADDED")
    assert kinds == ["ADDED"] * (taken - 1) + ["BOOKMARK"] * (61 - taken) + ["ADDED"]  # smaller ones still fit
    assert 40 <= taken <= 45
    assert "no room" in str(caplog.records[0].args["err"])


async def test_room_that_was_left_is_taken_again():
    first = [("ADDED", large(number)) for number in range(60)]
    gone = [("DELETED", large(number)) for number in range(40)]
    selection = PodSelection(ApiConnection(*first, *gone, ("ADDED", large(59))), "n1")
    assert (await watched(selection))[-1] == ("ADDED", "1")
