"""What the scheduler does with pods that have no node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.api import EVENTS, NODES, PODS, Api
from tests.cluster.waiting import eventually
from tests.contract.conditions import condition

LABEL = "example.com/contract"
HELPLESS, NO_VICTIMS = "Preemption is not helpful for scheduling", "No preemption victims found for incoming pod"
ZONE = {"topology.kubernetes.io/zone": "here", "topology.kubernetes.io/region": "near"}

Create = Callable[..., str]


@pytest.fixture
def node(api: Api, name: str) -> Create:
    """Creates nodes with the test's label that are ready and have no taints but those given."""

    def create(suffix: str = "", *, labels: dict[str, str] | None = None, **spec: Any) -> str:
        node_name, capacity = f"{name}{suffix}", spec.pop("capacity", {"cpu": "2", "memory": "1Gi", "pods": "10"})
        metadata = {"name": node_name, "labels": {LABEL: name[:63].strip("-"), **(labels or {})}}
        status = {"capacity": capacity, "conditions": [condition("Ready", "True")]}
        api.create(NODES, {"metadata": metadata, "spec": spec, "status": status})
        allowed = {taint["key"] for taint in spec.get("taints", [])}
        if spec.get("unschedulable"):
            allowed |= {"node.kubernetes.io/unschedulable"}
        eventually(
            lambda: {taint["key"] for taint in api.get(f"{NODES}/{node_name}")["spec"].get("taints", [])} == allowed
        )
        return node_name

    return create


@pytest.fixture
def pod(api: Api, name: str) -> Iterator[Create]:
    """Creates pods for the test's nodes, and deletes them after it."""
    paths = []

    def create(suffix: str = "", *, requests: dict[str, str] | None = None, **spec: Any) -> str:
        container: dict[str, Any] = {"name": "c", "image": "i", "ports": spec.pop("ports", [])}
        container["resources"] = {"requests": requests or {}}
        selector = {LABEL: name[:63].strip("-")}
        given = {"automountServiceAccountToken": False, "nodeSelector": selector, "containers": [container], **spec}
        api.create(PODS, {"metadata": {"name": f"{name}{suffix}"}, "spec": given})
        paths.append(f"{PODS}/{name}{suffix}")
        return paths[-1]

    yield create
    for path in paths:
        api.delete(f"{path}?gracePeriodSeconds=0")


def node_of(api: Api, path: str) -> str:
    """The node of a pod, once it has one."""
    return str(eventually(lambda: api.get(path)["spec"].get("nodeName")))


def scheduled(api: Api, path: str) -> Any:
    """The condition PodScheduled of a pod."""
    return next(entry for entry in api.get(path)["status"]["conditions"] if entry["type"] == "PodScheduled")


def unschedulable(api: Api, path: str, reason: str, outcome: str) -> Any:
    """The condition of a pod that fits nowhere, once its message gives this reason, also for nodes of others."""
    head = r"0/(\d+) nodes are available:"
    one = rf"{head} (.*, )?[1-9]\d* {re.escape(reason)}(, .*)?\. no new claims to deallocate"
    pattern = rf"{one}, preemption: 0/\1 nodes are available: (.*, )?\d+ {outcome}(, .*)?\."
    return eventually(lambda: scheduled(api, path), lambda found: re.fullmatch(pattern, found.get("message", "")))


def events(api: Api, path: str, reason: str) -> list[Any]:
    selector = f"involvedObject.uid={api.get(path)['metadata']['uid']},reason={reason}"
    return list(api.ask("GET", EVENTS, fieldSelector=selector).json()["items"])


def test_a_pod_gets_a_node(api: Api, node: Create, pod: Create, name: str) -> None:
    node()
    path = pod()
    assert node_of(api, path) == name
    found = scheduled(api, path)
    assert found.keys() == {"type", "status", "lastProbeTime", "lastTransitionTime"}
    assert (found["status"], found["lastProbeTime"]) == ("True", None)


def test_the_assignment_is_an_event(api: Api, node: Create, pod: Create, name: str) -> None:
    node()
    path = pod()
    (event,) = eventually(lambda: events(api, path, "Scheduled"))
    assert (event["type"], event["action"]) == ("Normal", "Binding")
    assert event["message"] == f"Successfully assigned default/{name} to {name}"
    assert event["reportingComponent"] == "default-scheduler"
    assert event["reportingInstance"].startswith("default-scheduler")
    assert (event["source"], event["firstTimestamp"], bool(event["eventTime"])) == ({}, None, True)
    assert event["metadata"]["name"].startswith(f"{name}.")
    about = event["involvedObject"]
    assert (about["kind"], about["namespace"], about["name"]) == ("Pod", "default", name)


def test_a_pod_without_a_node_that_fits_says_why(api: Api, node: Create, pod: Create) -> None:
    node()
    path = pod(requests={"cpu": "3"})
    found = unschedulable(api, path, "Insufficient cpu", HELPLESS)
    assert (found["status"], found["reason"], found["observedGeneration"]) == ("False", "Unschedulable", 1)
    assert api.get(path)["status"]["phase"] == "Pending"
    event = eventually(lambda: events(api, path, "FailedScheduling"))[-1]
    assert (event["type"], event["action"]) == ("Warning", "Scheduling")
    assert event["message"].startswith("0/")


@pytest.mark.parametrize(
    ("on_node", "of_pod", "reason"),
    [
        ({"unschedulable": True}, {}, "node(s) were unschedulable"),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {}, "node(s) had untolerated taint(s)"),
        ({"taints": [{"key": "a", "effect": "NoExecute"}]}, {}, "node(s) had untolerated taint(s)"),
        ({}, {"requests": {"memory": "2Gi"}}, "Insufficient memory"),
        ({}, {"requests": {"example.com/gpu": "1"}}, "Insufficient example.com/gpu"),
    ],
    ids=["cordoned", "NoSchedule", "NoExecute", "memory", "a resource that it lacks"],
)
def test_a_node_may_not_take_a_pod(api: Api, node: Create, pod: Create, on_node: Any, of_pod: Any, reason: str) -> None:
    node(**on_node)
    if "example.com/gpu" in str(of_pod):
        of_pod = {"containers": [container({"limits": of_pod["requests"]})]}
    unschedulable(api, pod(**of_pod), reason, HELPLESS)


def container(resources: Any) -> Any:
    return {"name": "c", "image": "i", "resources": resources}


def test_a_selector_that_no_node_has(api: Api, node: Create, pod: Create) -> None:
    node()
    path = pod(nodeSelector={LABEL: "none"})
    found = eventually(lambda: scheduled(api, path), lambda found: "selector" in found.get("message", ""))
    assert re.search(r"\d+ node\(s\) didn't match Pod's node affinity/selector", found["message"])


def test_what_others_have_requested_is_taken(api: Api, node: Create, pod: Create) -> None:
    node()
    node_of(api, pod("-first", requests={"cpu": "1500m"}))
    unschedulable(api, pod("-second", requests={"cpu": "1"}), "Insufficient cpu", NO_VICTIMS)


def test_a_limit_counts_as_a_request(api: Api, node: Create, pod: Create) -> None:
    node()
    path = pod(containers=[container({"limits": {"cpu": "3"}})])
    assert api.get(path)["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    unschedulable(api, path, "Insufficient cpu", HELPLESS)


def test_a_node_takes_as_many_pods_as_it_says(api: Api, node: Create, pod: Create) -> None:
    node(capacity={"cpu": "2", "memory": "1Gi", "pods": "1"})
    node_of(api, pod("-first"))
    unschedulable(api, pod("-second"), "Too many pods", NO_VICTIMS)


def test_a_port_of_the_host_is_taken_once(api: Api, node: Create, pod: Create) -> None:
    node()
    ports = [{"containerPort": 80, "hostPort": 8080}]
    node_of(api, pod("-first", ports=ports))
    reason = "node(s) didn't have free ports for the requested pod ports"
    unschedulable(api, pod("-second", ports=ports), reason, NO_VICTIMS)


def test_room_that_is_made_is_used(api: Api, node: Create, pod: Create, name: str) -> None:
    node()
    first, second = pod("-first", requests={"cpu": "2"}), pod("-second", requests={"cpu": "1"})
    node_of(api, first)
    unschedulable(api, second, "Insufficient cpu", NO_VICTIMS)
    api.delete(f"{first}?gracePeriodSeconds=0")
    assert node_of(api, second) == name


def test_a_pod_waits_for_its_first_node(api: Api, node: Create, pod: Create, name: str) -> None:
    path = pod()
    eventually(lambda: scheduled(api, path)["reason"] == "Unschedulable")
    node()
    assert node_of(api, path) == name


def test_a_cordoned_node_takes_pods_again(api: Api, node: Create, pod: Create, name: str) -> None:
    node(unschedulable=True)
    path = pod()
    unschedulable(api, path, "node(s) were unschedulable", HELPLESS)
    api.ask("PATCH", f"{NODES}/{name}", {"spec": {"unschedulable": None}})
    assert node_of(api, path) == name


@pytest.mark.parametrize(
    "toleration",
    [{"key": "a", "operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}, {"operator": "Exists"}],
    ids=["the key", "key, value and effect", "everything"],
)
def test_a_toleration_opens_a_node(api: Api, node: Create, pod: Create, name: str, toleration: Any) -> None:
    node(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    assert node_of(api, pod(tolerations=[toleration])) == name


def affinity(**rules: Any) -> Any:
    return {"nodeAffinity": rules}


def expression(value: str) -> Any:
    return {"matchExpressions": [{"key": "size", "operator": "In", "values": [value]}]}


def test_required_affinity_chooses_the_node(api: Api, node: Create, pod: Create, name: str) -> None:
    node("-small", labels={"size": "small"})
    node("-large", labels={"size": "large"})
    rules = affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": [expression("large")]})
    assert node_of(api, pod(affinity=rules)) == f"{name}-large"


def test_preferred_affinity_chooses_the_node(api: Api, node: Create, pod: Create, name: str) -> None:
    node("-a", labels={"size": "small"})
    node("-b", labels={"size": "large"})
    preferred = [{"weight": 100, "preference": expression("large")}]
    rules = affinity(preferredDuringSchedulingIgnoredDuringExecution=preferred)
    assert node_of(api, pod(affinity=rules)) == f"{name}-b"


def test_a_taint_to_avoid_is_avoided(api: Api, node: Create, pod: Create, name: str) -> None:
    node("-a", taints=[{"key": "a", "effect": "PreferNoSchedule"}])
    node("-b")
    assert node_of(api, pod()) == f"{name}-b"


def test_pods_spread_to_the_node_with_more_left(api: Api, node: Create, pod: Create, name: str) -> None:
    node("-a")
    node("-b")
    first = node_of(api, pod("-first", requests={"cpu": "1", "memory": "512Mi"}))
    second = node_of(api, pod("-second", requests={"cpu": "1", "memory": "512Mi"}))
    assert {first, second} == {f"{name}-a", f"{name}-b"}


def test_the_higher_priority_gets_the_last_place(api: Api, node: Create, pod: Create, name: str) -> None:
    low = pod("-low", requests={"cpu": "2"})
    high = pod("-high", requests={"cpu": "2"}, priorityClassName="system-node-critical")
    for path in (low, high):
        eventually(lambda path=path: scheduled(api, path)["reason"] == "Unschedulable")
    assert api.get(high)["spec"]["priority"] == 2_000_001_000
    node()
    assert node_of(api, high) == name  # a real scheduler that tried the other one first would evict it again


def test_there_must_be_such_a_class_of_priority(api: Api, name: str) -> None:
    spec = {"containers": [container({})], "automountServiceAccountToken": False, "priorityClassName": "none"}
    refusal = api.ask("POST", PODS, {"metadata": {"name": name}, "spec": spec}).refusal
    assert refusal == (403, "Forbidden", f'pods "{name}" is forbidden: no PriorityClass with name none was found')


def test_a_pod_of_another_scheduler_is_left_alone(api: Api, node: Create, pod: Create) -> None:
    node()
    other, own = pod("-other", schedulerName="nobody"), pod("-own")
    node_of(api, own)
    assert "nodeName" not in api.get(other)["spec"]


def test_a_pod_behind_a_gate_waits(api: Api, node: Create, pod: Create) -> None:
    node()
    gated, free = pod("-gated", schedulingGates=[{"name": "example.com/gate"}]), pod("-free")
    node_of(api, free)
    assert "nodeName" not in api.get(gated)["spec"]
    binding = {"metadata": {"name": gated.rpartition("/")[2]}, "target": {"name": "any"}}
    code, reason, message = api.ask("POST", f"{gated}/binding", binding).refusal
    assert (code, reason) == (409, "Conflict")
    assert message.endswith("has non-empty .spec.schedulingGates")


def test_a_pod_takes_over_the_topology_of_its_node(api: Api, node: Create, pod: Create) -> None:
    node(labels=ZONE)
    path = pod()
    node_of(api, path)
    assert api.get(path)["metadata"]["labels"] == ZONE


def test_a_binding_may_be_posted_beside_the_pods(api: Api, pod: Create, name: str) -> None:
    path = pod(schedulerName="nobody")
    bindings = PODS.replace("pods", "bindings")
    answer = api.ask("POST", bindings, {"metadata": {"name": name}, "target": {"kind": "Node", "name": "any"}})
    assert (answer.status, answer.json()["status"], answer.json()["code"]) == (201, "Success", 201)
    assert api.get(path)["spec"]["nodeName"] == "any"


@pytest.mark.parametrize(
    ("binding", "refusal"),
    [
        ({"metadata": {"name": "another"}}, (400, "BadRequest", "name in URL does not match name in Binding object")),
        ({"target": {}}, (500, "", "target.name: Required value")),
    ],
    ids=["another name", "no target"],
)
def test_a_binding_must_be_complete(api: Api, pod: Create, name: str, binding: Any, refusal: Any) -> None:
    path = pod(schedulerName="nobody")
    whole = {"metadata": {"name": name}, "target": {"name": "any"}} | binding
    assert api.ask("POST", f"{path}/binding", whole).refusal == refusal


def test_a_binding_is_for_one_pod(api: Api, pod: Create, name: str) -> None:
    path = pod(schedulerName="nobody")
    binding = {"metadata": {"name": name, "uid": "another"}, "target": {"name": "any"}}
    code, reason, message = api.ask("POST", f"{path}/binding", binding).refusal
    assert (code, reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: another, UID in object meta: " in message


def test_quantities_are_written_in_their_canonical_form(api: Api, pod: Create) -> None:
    path = pod(schedulerName="nobody", containers=[container({"requests": {"cpu": 1, "memory": "1024Ki"}})])
    assert api.get(path)["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Mi"}


@pytest.mark.parametrize("amount", ["a lot", "1Zi", "--1"])
def test_a_request_is_a_quantity(api: Api, name: str, amount: str) -> None:
    spec = {"automountServiceAccountToken": False, "containers": [container({"requests": {"cpu": amount}})]}
    code, reason, message = api.ask("POST", PODS, {"metadata": {"name": name}, "spec": spec}).refusal
    assert (code, reason) == (400, "BadRequest")
    assert "quantit" in message


def tainted(api: Api, name: str) -> None:
    taint = {"key": "a", "value": "b", "effect": "NoExecute"}
    assert api.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": [taint]}}).status == 200


def test_a_taint_that_is_not_tolerated_evicts_pods(api: Api, node: Create, pod: Create, name: str) -> None:
    node()
    evicted = pod()
    node_of(api, evicted)
    tainted(api, name)
    found = eventually(lambda: api.get(evicted), lambda found: "deletionTimestamp" in found["metadata"])
    (condition,) = [entry for entry in found["status"]["conditions"] if entry["type"] == "DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintManager")
    assert condition["message"] == "Taint manager: deleting due to NoExecute taint"
    selector = f"involvedObject.name={name},reason=TaintManagerEviction"
    event = eventually(lambda: api.ask("GET", EVENTS, fieldSelector=selector).json()["items"])[0]
    about = {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": "default"}
    assert event["involvedObject"] == about
    assert (event["type"], event["source"]) == ("Normal", {"component": "taint-eviction-controller"})
    assert event["message"] == f"Marking for deletion Pod default/{name}"


def test_a_pod_that_tolerates_the_taint_stays(api: Api, node: Create, pod: Create, name: str) -> None:
    node()
    evicted, staying = pod("-evicted"), pod("-staying", tolerations=[{"key": "a", "operator": "Exists"}])
    for path in (evicted, staying):
        node_of(api, path)
    tainted(api, name)
    eventually(lambda: "deletionTimestamp" in api.get(evicted)["metadata"])
    assert "deletionTimestamp" not in api.get(staying)["metadata"]


def test_a_pod_that_comes_to_a_tainted_node_is_evicted(api: Api, node: Create, pod: Create, name: str) -> None:
    node(taints=[{"key": "a", "effect": "NoExecute"}])
    path = pod(nodeName=name)
    eventually(lambda: "deletionTimestamp" in api.get(path)["metadata"])
