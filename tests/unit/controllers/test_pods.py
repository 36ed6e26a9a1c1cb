import copy
import gc
from dataclasses import replace

import pytest

from agent.core.schedule import TokenBucket
from agent.machinery.recorder import EventRecorder
from agent.machinery.runner import Runner
from agent.ports import Unavailable
from tests.fakes import POD_NODE, ForgottenEvents, running, settle
from tests.settings import NodeConfig, Pods

pytestmark = pytest.mark.anyio


@pytest.fixture
def settings():
    return Pods()


@pytest.fixture
def config(settings):
    return NodeConfig(node_name="n1", pods=settings)


async def test_a_pod_is_told_to_be_coming_and_then_to_run(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
    assert (pods.phase("a"), pods.patches) == ("Running", ["a", "a"])
    assert pods.objects["a"]["status"]["podIP"] == "10.0.0.2"
    assert told.events == [("a", "Pulled"), ("a", "Created"), ("a", "Started")]


async def test_an_annotation_that_says_nothing_is_reported_once_for_each_value(controller, workers, pods, told):
    def reported():
        return [event for event in told.events if event[1] == "InvalidFakeKubeletAnnotation"]

    async with running(workers):
        pods.add("a")
        pods.mark("a", annotations={"fake-kubelet.dev/run-for": "soon"})
        await settle()
        assert (pods.phase("a"), len(reported())) == ("Running", 1)
        pods.mark("a", labels={"x": "y"})
        await settle()
        assert len(reported()) == 1
        pods.mark("a", annotations={"fake-kubelet.dev/run-for": "later"})
        await settle()
        assert len(reported()) == 2


async def test_of_many_pods_each_is_told_once(controller, workers, pods):
    for number in range(100):
        pods.add(f"p{number}")
    async with running(workers):
        await settle()
    assert {pods.phase(name) for name in pods.objects} == {"Running"}
    assert len(pods.patches) < 130
    assert len({pod["status"]["podIP"] for pod in pods.objects.values()}) == 100


async def test_a_deleted_pod_is_ended_and_removed_once(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
        pods.terminate("a")
        await settle()
    assert pods.deleted == [("ns", "a", "uid-a")]
    assert told.events[-1] == ("a", "Killing")


async def test_a_pod_that_others_removed_is_forgotten(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
        pods.drop("a")
        await settle()
        assert controller.store.size == 0
    assert told.events[-1] == ("a", "Killing")
    assert told.forgotten == ["uid-a"]
    assert pods.deleted == []


async def test_a_pod_that_is_gone_before_its_end_could_be_told_was_ended_all_the_same(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
        gone, pods.on_change = pods.objects["a"], lambda _: None
        pods.drop("a")
        end = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0}
        controller.put(gone | {"metadata": gone["metadata"] | end | {"generation": 2, "resourceVersion": "999"}})
        await settle()
        controller.remove(gone)
    assert [reason for _, reason in told.events].count("Killing") == 1


async def test_a_pod_that_goes_with_the_status_that_is_sent_is_told_to_end_once(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
        pods.terminate("a", grace=0)
        await settle()
        assert controller.store.size == 0
    assert pods.patches == ["a", "a", "a"]
    assert [reason for _, reason in told.events].count("Killing") == 1


async def test_a_pod_that_is_removed_while_its_status_is_sent_stays_forgotten(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        await settle()
        pods.meanwhile = pods.drop  # the watch is faster than the answer
        pods.mark("a", generation=2)
        await settle()
        assert controller.store.size == 0
    assert told.forgotten == ["uid-a", "uid-a"]  # the second time after the events of that status


async def test_an_address_is_free_again_when_its_pod_has_ended(controller, workers, pods, state):
    state.put(POD_NODE | {"spec": {"podCIDRs": ["10.0.0.0/30"]}})  # room for one
    async with running(workers):
        pods.add("a")
        await settle()
        pods.terminate("a")
        await settle()
        pods.add("b")
        await settle()
    assert pods.objects["b"]["status"]["podIP"] == "10.0.0.2"


async def test_a_pod_without_an_address_waits_and_says_so(controller, workers, pods, state, told, clock):
    state.put(POD_NODE | {"spec": {"podCIDRs": ["10.0.0.0/30"]}})
    async with running(workers):
        pods.add("a")
        await settle()
        pods.add("b")
        await settle()
        assert (pods.phase("b"), told.events[-1]) == ("Pending", ("b", "FailedCreatePodSandBox"))
        pods.terminate("a")
        await clock.advance(10)
    assert pods.phase("b") == "Running"


async def test_a_cluster_without_pod_ranges_gets_pods_without_addresses_after_a_while(
    controller, workers, pods, state, clock
):
    state.put(POD_NODE | {"spec": {}})
    async with running(workers):
        pods.add("a")
        await clock.advance(9)
        assert pods.phase("a") == "Pending"
        await clock.advance(2)
    assert pods.phase("a") == "Running"
    assert "podIP" not in pods.objects["a"]["status"]


async def test_pods_wait_for_their_node(controller, workers, pods, state, clock):
    state.forget()
    async with running(workers):
        pods.add("a")
        await clock.advance(5)
        assert pods.patches == []
        state.put(POD_NODE)
        await clock.advance(1)
    assert pods.phase("a") == "Running"


async def test_pods_that_come_together_do_not_share_what_is_there_for_one(controller, workers, pods):
    big = {"containers": [{"name": "main", "image": "x:1", "resources": {"requests": {"cpu": "3"}}}]}
    pods.add("a", spec=big)
    pods.add("b", spec=big)
    async with running(workers):
        await settle()
    assert sorted([pods.phase("a"), pods.phase("b")]) == ["Failed", "Running"]


@pytest.mark.parametrize(
    ("labels", "phase"), [({"zone": "a"}, "Running"), ({}, "Failed"), (None, "Failed")], ids=["new", "same", "unknown"]
)
async def test_before_a_pod_is_refused_for_its_affinity_the_node_is_read_again(
    controller, workers, pods, nodes, labels, phase
):
    if labels is not None:
        nodes.put(POD_NODE | {"metadata": POD_NODE["metadata"] | {"labels": labels}})
    async with running(workers):
        pods.add("a", spec={"nodeSelector": {"zone": "a"}, "containers": [{"name": "main", "image": "x:1"}]})
        await settle()
    assert (pods.phase("a"), len(nodes.times("get"))) == (phase, 1)


def asking(cpu, priority=0):
    container = {"name": "main", "image": "x:1", "resources": {"requests": {"cpu": cpu}}}
    return {"priority": priority, "terminationGracePeriodSeconds": 30, "containers": [container]}


async def test_for_a_critical_pod_others_have_to_go(controller, workers, pods, clock, told):
    async with running(workers):
        pods.add("small", spec=asking("1"))
        slow = {"annotations": {"fake-kubelet.dev/stop-after": "5s"}, "generation": 1}
        pods.add("large", spec=asking("3"), metadata={"name": "large", "namespace": "ns", "uid": "uid-large"} | slow)
        await settle()
        pods.add("critical", spec=asking("2", priority=2_000_000_000))
        await clock.advance(4)
        assert (pods.phase("large"), pods.phase("critical")) == ("Running", "Pending")  # it may take its time
        await clock.advance(2)
    assert (pods.phase("small"), pods.phase("large"), pods.phase("critical")) == ("Running", "Failed", "Running")
    gone = pods.objects["large"]["status"]
    assert (gone["reason"], gone["message"]) == ("Preempting", "Preempted in order to admit critical pod")
    (disruption,) = [one for one in gone["conditions"] if one["type"] == "DisruptionTarget"]
    assert disruption["message"] == "Pod was preempted by Kubelet to accommodate a critical pod."
    assert told.events.count(("large", "Preempting")) == 1


async def test_a_critical_pod_that_never_fits_is_refused_and_nobody_goes_for_it(controller, workers, pods):
    async with running(workers):
        pods.add("small", spec=asking("1"))
        await settle()
        pods.add("critical", spec=asking("5", priority=2_000_000_000))
        await settle()
    assert (pods.phase("small"), pods.phase("critical")) == ("Running", "Failed")
    status = pods.objects["critical"]["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"].endswith("reclaim resources: [(res: cpu, q: 1000), ]")


async def test_what_the_api_server_did_not_take_is_sent_again(controller, workers, pods, clock):
    pods.fail = lambda _: Unavailable("away")
    async with running(workers):
        pods.add("a")
        await clock.advance(9)
        pods.fail = lambda _: None
        assert pods.phase("a") == "Pending"
        await clock.advance(2)
    assert pods.phase("a") == "Running"


async def test_a_pod_of_the_same_name_is_another_pod(controller, workers, pods):
    async with running(workers):
        pods.add("a")
        await settle()
        pods.objects["a"]["metadata"]["uid"] = "another"  # and nobody has told us yet
        count = len(pods.patches)
        ours = controller.store.get("uid-a").decode()
        controller.put(ours | {"metadata": ours["metadata"] | {"generation": 7, "resourceVersion": "999"}})
        await settle()
    assert len(pods.patches) == count


async def test_what_shows_a_static_pod_that_nobody_runs_is_removed(controller, workers, pods):
    mirror = {"kubernetes.io/config.mirror": "hash"}
    async with running(workers):
        pods.add("a", metadata={"name": "a", "namespace": "ns", "uid": "uid-a", "annotations": mirror})
        await settle()
    assert pods.deleted == [("ns", "a", "uid-a")]


async def test_an_older_state_is_no_news(controller, workers, pods):
    async with running(workers):
        pods.add("a")
        old = copy.deepcopy(pods.objects["a"])
        await settle()
        count = len(pods.patches)
        controller.put(old)
        await settle()
        assert len(pods.patches) == count


async def test_a_list_forgets_what_it_does_not_show(controller, workers, pods, told):
    async with running(workers):
        pods.add("a")
        pods.add("b")
        await settle()
        controller.reset([copy.deepcopy(pods.objects["b"])], "99")
        assert [pod.name for pod in controller.store.infos()] == ["b"]
    assert told.events[-1] == ("a", "Killing")  # as by a kubelet, however it is told that the pod is gone


async def test_a_timed_end_comes_by_itself(controller, workers, pods, clock):
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x:1"}]}
    metadata = {"name": "a", "namespace": "ns", "uid": "uid-a", "annotations": {"fake-kubelet.dev/run-for": "30s"}}
    async with running(workers):
        pods.add("a", spec=spec, metadata=metadata)
        await clock.advance(29)
        assert pods.phase("a") == "Running"
        await clock.advance(1)
    assert pods.phase("a") == "Succeeded"


@pytest.mark.parametrize("settings", [Pods(mode="refuse")])
async def test_a_node_may_refuse_all_pods_and_still_lets_them_go(controller, workers, pods):
    async with running(workers):
        pods.add("a")
        await settle()
        assert pods.objects["a"]["status"]["reason"] == "PodsRefused"
        pods.terminate("a")
        await settle()
    assert pods.deleted == [("ns", "a", "uid-a")]


async def churn(pods, voice, first, last):
    """Let pods come and go, fifty at a time."""
    for number in range(first, last, 50):
        names = [f"p{index}" for index in range(number, number + 50)]
        for name in names:
            pods.add(name)
        await settle()
        for name in names:
            pods.terminate(name)
        while pods.objects:
            await settle()
        await voice.drained()
    pods.patches.clear()
    pods.deleted.clear()
    pods.calls.clear()
    gc.collect()
    return len(gc.get_objects())


async def test_pods_that_are_gone_leave_nothing_behind(make_controller, workers, pods, queue, scheduling):
    pace = TokenBucket(per_second=50, at_once=5000)  # no time passes here
    voice = EventRecorder("n1", ForgottenEvents(), pace=pace, scheduling=scheduling)
    controller = make_controller(voice)
    async with running(workers, Runner("events", queue)):
        await churn(pods, voice, 0, 100)
        before = await churn(pods, voice, 100, 200)
        after = await churn(pods, voice, 200, 400)
        assert controller.store.size == 0
    assert after - before < 100


def test_the_pods_mode_is_one_of_three():
    with pytest.raises(Exception, match="--pods must be simulate, refuse or ignore"):
        replace(Pods(), mode="run")
