"""The ports' promises, kept alike by the fakes of the unit tests, the embedded cluster and a real API server."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

import pytest

from agent.adapters.api_connection import ApiConnection
from agent.adapters.certificates.csr_clients import KubeCSRs
from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.credentials import load_credentials
from agent.adapters.kube import (
    KubeCSINodes,
    KubeEvents,
    KubeLeases,
    KubeNodes,
    KubePods,
    KubeSelection,
    PodSelection,
)
from agent.core.csr import client_template, digested_name, signing_request, usages
from agent.core.events import STARTING, event_object
from agent.core.lease import new_lease, renewed
from agent.core.node import new_csinode, new_node
from agent.core.nodestatus import desired_status
from agent.core.patch import node_patch
from agent.core.pods.static import Manifest, mirror_pod
from agent.minicluster import MiniCluster
from agent.ports import (
    AlreadyExists,
    Conflict,
    CSINodeApi,
    CSRApi,
    EventApi,
    LeaseApi,
    NodeApi,
    NotFound,
    PodApi,
    Rejected,
    WatchApi,
)
from tests.cluster.api import NODES
from tests.fakes import (
    START,
    FakeClock,
    FakeCSINodes,
    FakeCSRs,
    FakeEvents,
    FakeLeases,
    FakeNodes,
    FakePods,
    facts,
    host_snapshot,
)

pytestmark = pytest.mark.anyio


@dataclass
class Server:
    nodes: NodeApi
    leases: LeaseApi
    csinodes: CSINodeApi
    events: EventApi
    pods: PodApi
    csrs: CSRApi
    own_node: WatchApi
    own_pods: WatchApi


@pytest.fixture(params=["fake", "mini", pytest.param("real", marks=pytest.mark.real)])
async def server(request, tmp_path, node_name):
    if request.param == "fake":
        clock = FakeClock()
        nodes, pods = FakeNodes(clock), FakePods(clock)
        others = (FakeLeases(clock), FakeCSINodes(clock), FakeEvents(clock))
        yield Server(nodes, *others, pods, FakeCSRs(clock, approves=False), own_node=nodes, own_pods=pods)
        return
    if request.param == "mini":
        async with MiniCluster() as cluster:
            cluster.write_kubeconfig(tmp_path / "kubeconfig")
            async for connected in through(tmp_path / "kubeconfig", node_name):
                yield connected
        return
    plane = request.getfixturevalue("control_plane")
    async for connected in through(plane.node_kubeconfig(node_name), node_name):
        yield connected
    plane.api.delete(f"{NODES}/{node_name}")


async def through(kubeconfig, name):
    connection = ApiConnection(await load_credentials(str(kubeconfig)), architecture="amd64", timeout_seconds=60)
    yield Server(
        KubeNodes(connection),
        KubeLeases(connection),
        KubeCSINodes(connection),
        KubeEvents(connection),
        KubePods(connection),
        KubeCSRs(connection),
        own_node=KubeSelection.node(connection, name),
        own_pods=PodSelection(connection, name),
    )
    await connection.close()


def node(name, **given):
    fresh, _ = new_node(facts(**given))
    return {**fresh, "metadata": {**fresh["metadata"], "name": name}}


async def owner(server, name):
    """The UID of a living Node: what belongs to a dead one is collected."""
    return (await server.nodes.create(node(name)))["metadata"]["uid"]


async def lease(server, name):
    uid = await owner(server, name)
    return await server.leases.create(new_lease(name, duration_seconds=40, owner_uid=uid, now=START))


async def pod(server, name):
    """A mirror pod, the only kind that a node may create."""
    owner = await server.nodes.create(node(name))
    spec = {"containers": [{"name": "main", "image": "pause:1"}]}
    return await server.pods.create(mirror_pod(Manifest("/m", {"metadata": {"name": "p"}, "spec": spec}), owner, START))


def names(listed):
    return [obj["metadata"]["name"] for obj in listed.objects]


async def test_what_is_not_there_is_not_found(server, node_name):
    for kind in (server.nodes, server.leases, server.csinodes):
        with pytest.raises(NotFound):
            await kind.get(node_name)


async def test_a_created_node_has_a_uid_and_cannot_be_created_again(server, node_name):
    created = await server.nodes.create(node(node_name))
    assert created["metadata"]["uid"]
    assert (await server.nodes.get(node_name))["metadata"]["uid"] == created["metadata"]["uid"]
    with pytest.raises(AlreadyExists):
        await server.nodes.create(node(node_name))


async def test_a_status_patch_makes_the_node_what_was_desired(server, node_name):
    before = await server.nodes.create(node(node_name))
    now = facts(
        observed=before["status"], host=host_snapshot(cpu_millicores=8000), pressure=frozenset({"DiskPressure"})
    )
    desired = desired_status(now).status
    await server.nodes.patch_status(node_name, node_patch(before, {**before, "status": desired}))
    after = await server.nodes.get(node_name)
    assert after["status"]["capacity"]["cpu"] == "8"
    assert after["status"]["conditions"] == desired["conditions"]
    assert node_patch(after, {**after, "status": desired}) == {}


async def test_two_internal_addresses_survive_a_patch(server, node_name):
    before = await server.nodes.create(node(node_name))
    addresses = [
        {"type": "InternalIP", "address": "192.0.2.10"},
        {"type": "InternalIP", "address": "2001:db8::10"},
        {"type": "Hostname", "address": node_name},
    ]
    wanted = {**before, "status": {**before["status"], "addresses": addresses}}
    after = await server.nodes.patch_status(node_name, node_patch(before, wanted))
    assert after["status"]["addresses"] == addresses


async def test_a_lease_is_renewed_from_what_the_last_write_answered(server, node_name):
    latest = await lease(server, node_name)
    for _ in range(3):
        latest = await server.leases.replace(renewed(latest, duration_seconds=40, now=START))
    assert (await server.leases.get(node_name))["metadata"]["resourceVersion"] == latest["metadata"]["resourceVersion"]


async def test_a_stale_lease_is_a_conflict(server, node_name):
    stale = await lease(server, node_name)
    await server.leases.replace(renewed(stale, duration_seconds=41, now=START))
    with pytest.raises(Conflict):
        await server.leases.replace(renewed(stale, duration_seconds=42, now=START))


async def test_a_csinode_can_be_made_and_removed(server, node_name):
    await server.csinodes.create(new_csinode(node_name, await owner(server, node_name)))
    assert (await server.csinodes.get(node_name))["spec"]["drivers"] is None
    await server.csinodes.delete(node_name)
    with pytest.raises(NotFound):
        await server.csinodes.get(node_name)


async def test_an_event_is_taken_as_it_is(server, node_name):
    sent = event_object(node_name, STARTING, START, 1)
    stored = await server.events.create(sent)
    assert {key: stored[key] for key in ("reason", "message", "type", "count", "involvedObject")} == {
        key: sent[key] for key in ("reason", "message", "type", "count", "involvedObject")
    }


async def test_a_watch_tells_what_happened_after_the_list(server, node_name):
    listed = await server.own_node.list()
    assert listed.objects == []
    created = await server.nodes.create(node(node_name))
    patched = await server.nodes.patch_status(node_name, {"metadata": {"labels": {"example.com/a": "b"}}})
    seen = []
    async with asyncio.timeout(60), aclosing(server.own_node.watch(listed.version, seconds=60)) as changes:
        async for change in changes:
            seen.append(change)
            if change.kind == "MODIFIED" and change.object["metadata"]["labels"].get("example.com/a"):
                break
    assert [change.kind for change in seen[:2]] == ["OPENED", "ADDED"]
    assert seen[1].object["metadata"]["uid"] == created["metadata"]["uid"]
    assert seen[-1].object["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"]


async def test_a_list_shows_our_node_and_no_other(server, node_name):
    created = await server.nodes.create(node(node_name))
    listed = await server.own_node.list()
    assert [found["metadata"]["uid"] for found in listed.objects] == [created["metadata"]["uid"]]


async def test_a_pods_status_is_patched_by_whom_knows_its_uid(server, node_name):
    created = await pod(server, node_name)
    namespace, name, uid = (created["metadata"][field] for field in ("namespace", "name", "uid"))
    patch = {"metadata": {"uid": uid}, "status": {"phase": "Running"}}
    assert (await server.pods.patch_status(namespace, name, patch))["status"]["phase"] == "Running"
    with pytest.raises(Rejected):
        await server.pods.patch_status(namespace, name, {**patch, "metadata": {"uid": "another"}})


async def test_a_pod_is_removed_at_once_by_whom_knows_its_uid(server, node_name):
    created = await pod(server, node_name)
    namespace, name, uid = (created["metadata"][field] for field in ("namespace", "name", "uid"))
    with pytest.raises(Conflict):
        await server.pods.delete(namespace, name, "another")
    assert names(await server.own_pods.list()) == [name]
    await server.pods.delete(namespace, name, uid)
    assert names(await server.own_pods.list()) == []
    with pytest.raises(NotFound):
        await server.pods.patch_status(namespace, name, {"status": {"phase": "Failed"}})


async def test_a_signing_request_without_a_name_gets_one_and_is_listed_alone(server, node_name):
    template = client_template(node_name)
    prepared = await KeyWorker().request(template)
    request = signing_request(prepared.csr_pem, template, usages(template.signer, is_rsa=prepared.is_rsa))
    first, second = await server.csrs.create(request), await server.csrs.create(request)
    name = first["metadata"]["name"]
    assert name.startswith("csr-")
    assert name != second["metadata"]["name"]
    assert (await server.csrs.get(name))["spec"]["request"] == request["spec"]["request"]
    assert names(await server.csrs.named(name).list()) == [name]


async def test_a_signing_request_may_have_a_name_that_is_no_subdomain(server, node_name):
    template = client_template(node_name)
    prepared = await KeyWorker().request(template)
    purposes = usages(template.signer, is_rsa=prepared.is_rsa)
    name = digested_name(prepared.public_key, template, purposes)
    request = signing_request(prepared.csr_pem, template, purposes, name=f"{name}_A")
    assert (await server.csrs.create(request))["metadata"]["name"] == f"{name}_A"
    with pytest.raises(AlreadyExists):
        await server.csrs.create(request)
