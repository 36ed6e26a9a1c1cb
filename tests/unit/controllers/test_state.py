import pytest

pytestmark = pytest.mark.anyio


async def test_an_older_state_does_not_replace_a_newer_one(state):
    state.put({"metadata": {"uid": "u", "resourceVersion": "10"}, "spec": {"new": True}})
    state.put({"metadata": {"uid": "u", "resourceVersion": "9"}})
    assert state.node()["spec"] == {"new": True}


async def test_a_list_from_before_the_node_was_created_does_not_delete_it(state):
    state.register("u")
    state.put({"metadata": {"uid": "u", "resourceVersion": "10"}})
    state.reset([], "9")
    assert state.uid == "u"
    state.reset([], "11")
    assert state.uid is None


async def test_a_node_that_the_cluster_gave_up_wakes_the_status_loop(state):
    woken = []
    state.on_changed(lambda: woken.append(True))
    state.put({"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {}})
    woken.clear()
    unknown = {"type": "Ready", "status": "Unknown"}
    state.put({"metadata": {"uid": "u", "resourceVersion": "2"}, "status": {"conditions": [unknown]}})
    assert woken
