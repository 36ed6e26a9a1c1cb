import pytest

from agent.controllers.eviction import EvictionController
from agent.core.pressure import Threshold, ThresholdValue
from agent.machinery.runner import Runner
from agent.process import Process
from tests.fakes import FakeHost, FakeRecorder, new_state, running
from tests.settings import Eviction, NodeConfig

pytestmark = pytest.mark.anyio


async def test_pods_go_one_by_one_while_the_host_is_short(controller, workers, pods, clock, told, queue, scheduling):
    low = FakeHost(clock, memory_available_bytes=1)
    config = NodeConfig(node_name="n1", eviction=Eviction(hard=(Threshold("memory.available", ThresholdValue(100)),)))
    process, node_voice = Process(low, clock, sensor_seconds=1.0), FakeRecorder()
    state = new_state(process, config)
    EvictionController(state, controller, events=node_voice, scheduling=scheduling).start()
    pods.add("a")
    pods.add("b")
    async with running(workers, Runner("node", queue)):
        await clock.advance(10)
        assert node_voice.reasons == []
        await process.engine.monitor.sync()
        await clock.advance(10)
        assert sorted(pods.phase(name) for name in "ab") == ["Failed", "Running"]
        await clock.advance(10)
    assert {pods.objects[name]["status"]["reason"] for name in "ab"} == {"Evicted"}
    assert node_voice.reasons == ["EvictionThresholdMet", "EvictionThresholdMet"]
    assert told.events.count(("a", "Evicted")) == 1
