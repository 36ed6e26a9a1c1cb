import pytest

from agent.controllers.pod_store import PodStore
from agent.controllers.static_pods import StaticPodController
from agent.core.pods.static import Manifest, mirror_hash
from agent.machinery.runner import Runner
from agent.ports import AlreadyExists, Unavailable
from tests.fakes import FakeManifests, FakePods, running, settle, succeed

pytestmark = pytest.mark.anyio

NODE = {"metadata": {"name": "n1", "uid": "node-uid", "resourceVersion": "1"}}
SPEC = {"containers": [{"name": "main", "image": "pause:1"}]}


@pytest.fixture
def store():
    return PodStore()


@pytest.fixture
def files():
    return FakeManifests(Manifest("/m/etcd.yaml", {"kind": "Pod", "metadata": {"name": "etcd"}, "spec": SPEC}))


@pytest.fixture
def cluster(store, clock):
    """Pods that the node sees as soon as they are created."""
    pods = FakePods(clock)
    pods.on_change = lambda change: change.kind == "DELETED" or store.upsert(change.object)
    return pods


@pytest.fixture
def controller(files, cluster, store, state, scheduling):
    state.put(NODE)
    controller = StaticPodController(state, cluster, files, store, scheduling=scheduling)
    controller.start()
    return controller


@pytest.fixture
def loop(controller, queue):
    return Runner("node", queue)


async def test_a_static_pod_is_shown_under_the_nodes_name_and_belongs_to_the_node(loop, cluster):
    async with running(loop):
        pass
    (mirror,) = cluster.created
    annotations = mirror["metadata"]["annotations"]
    assert (mirror["metadata"]["name"], mirror["metadata"]["namespace"]) == ("etcd-n1", "default")
    assert annotations["kubernetes.io/config.mirror"] == annotations["kubernetes.io/config.hash"]
    assert annotations["kubernetes.io/config.source"] == "file"
    assert mirror["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
    ]
    assert mirror["spec"]["nodeName"] == "n1"
    assert mirror["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]


async def test_it_is_shown_once(loop, cluster, clock):
    async with running(loop):
        await clock.advance(100)
    assert len(cluster.created) == 1


async def test_a_mirror_that_goes_is_made_again_at_once(controller, loop, cluster, store):
    async with running(loop):
        cluster.drop("etcd-n1")
        store.remove("uid-1")
        controller.on_mirror_removed()
        await settle()
    assert len(cluster.created) == 2


async def test_a_file_that_changed_asks_for_another_pod(controller, loop, cluster, files, clock):
    async with running(loop):
        mirror = cluster.created[0]
        assert controller.wants(mirror_hash(mirror))
        files.manifests[0] = files.manifests[0]._replace(pod={**files.manifests[0].pod, "metadata": {"name": "x"}})
        await clock.advance(20)
        assert not controller.wants(mirror_hash(mirror))
    assert cluster.created[-1]["metadata"]["name"] == "x-n1"


async def test_before_anybody_has_looked_nothing_is_known_about_a_mirror(controller):
    assert controller.wants("any") is None


@pytest.mark.parametrize("failure", [AlreadyExists("there is an older one"), Unavailable("away")])
async def test_what_could_not_be_created_is_tried_again(loop, cluster, clock, failure):
    cluster.fail = lambda _: failure
    async with running(loop):
        cluster.fail = succeed
        await clock.advance(20)
    assert len(cluster.created) == 1


async def test_mirrors_wait_for_their_node(loop, cluster, state, clock):
    state.forget()
    async with running(loop):
        await clock.advance(5)
        assert cluster.created == []
        state.put(NODE)
        await clock.advance(1)
    assert len(cluster.created) == 1
