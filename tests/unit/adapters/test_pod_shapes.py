"""Whatever passes the door for pods can be decided about."""

import copy
import random
from contextlib import suppress

import pytest

from agent.adapters.shapes import NodeShape, PodShape, misfit
from agent.core.container_log import LogUnavailable, run_log
from agent.core.patch import status_patch
from agent.core.pods.admission import AdmissionContext, rejected_status, rejection
from agent.core.pods.events import pod_events, removal_events
from agent.core.pods.eviction import rank_for_eviction
from agent.core.pods.info import pod_info
from agent.core.pods.ip_allocator import host_addresses, pod_ranges
from agent.core.pods.lifecycle import next_status
from agent.core.pods.resources import request_of
from agent.core.pods.stats import pod_stats
from agent.core.pods.status import PodContext
from agent.core.pressure import Threshold, ThresholdValue
from agent.core.times import timestamp
from tests.unit.core.pods.builders import NODE, NOW, Life, container, expression, pod, required

VALUES = (None, True, -1, 3.5, 10**30, "", "x", "9" * 40, "2026-01-01T00:00:00Z", [], [None], {}, {"a": []}, [{}])


def rich_pod():
    """A pod that has a bit of everything, after some time of its life."""
    probe = {"initialDelaySeconds": 5}
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    ports = [{"containerPort": 1, "hostPort": 2, "hostIP": "10.0.0.1", "protocol": "TCP"}]
    mounts = [{"name": "v", "mountPath": "/v", "readOnly": True}]
    main = container(
        startupProbe=probe,
        readinessProbe=probe,
        resources=resources,
        ports=ports,
        volumeMounts=mounts,
        command=["sh", "-c"],
        args=["echo $A; cat /v/labels /v/cpu; sleep 50; exit 2"],
        env=[
            {"name": "A", "value": "$(B)b"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        ],
    )
    files = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu"}},
    ]
    words = {"fake-kubelet.dev/run-for": "1s", "fake-kubelet.dev/exit-code": "1", "fake-kubelet.dev/stop-after": "5s"}
    the_pod = pod(
        main,
        initContainers=[container("side", restartPolicy="Always"), container("first")],
        nodeSelector={"zone": "a"},
        affinity=required(expression("zone", "In", "a")),
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoExecute"}],
        overhead={"cpu": "1"},
        securityContext={"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]},
        os={"name": "linux"},
        readinessGates=[{"conditionType": "x"}],
        activeDeadlineSeconds=600,
        terminationGracePeriodSeconds=30,
        restartPolicy="Always",
        priority=5,
        annotations=words,
        labels={"a": "b"},
        ownerReferences=[{"kind": "Job", "uid": "j"}],
        volumes=[{"name": "v", "projected": {"sources": [{"downwardAPI": {"items": files}}]}}],
    )
    life = Life(the_pod)
    life.pod["spec"]["ephemeralContainers"] = [container("debugger", targetContainerName="main")]
    return life.after(20).delete().pod


def places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def mutated(original, chance):
    """The object with one to three of its parts replaced, or removed."""
    changed = copy.deepcopy(original)
    for _ in range(chance.randint(1, 3)):
        *way, last = chance.choice(list(places(changed))[1:])
        parent = changed
        for key in way:
            parent = parent[key]
        if chance.random() < 0.3 and isinstance(parent, dict):
            del parent[last]
        else:
            parent[last] = copy.deepcopy(chance.choice(VALUES))
    return changed


def decide(the_pod, node):
    """Everything that is ever decided about a pod."""
    wanted = request_of(the_pod)
    why = rejection(
        the_pod, wanted, AdmissionContext(node=node, others=(wanted,), pressure=frozenset({"MemoryPressure"}))
    )
    statuses = [rejected_status(the_pod, why, "now")] if why else []
    context = PodContext(now=NOW, host_ips=host_addresses(node), pod_ips=("10.0.0.2",), job_seconds=1.0)
    statuses.append(next_status(the_pod, context).status)
    for status in statuses:
        status_patch(the_pod, status)
        pod_events(the_pod, status)
    removal_events(the_pod)
    with suppress(LogUnavailable):
        run_log(the_pod, "main", previous=False, understands_commands=True)
    list(pod_stats([pod_info(the_pod)], NOW))
    rank_for_eviction([pod_info(the_pod)], Threshold("memory.available", ThresholdValue(100 * 2**20)))
    pod_ranges(node)


@pytest.mark.parametrize("seed", range(4))
def test_a_pod_that_is_let_in_can_be_decided_about(seed):
    chance, original, passed = random.Random(seed), rich_pod(), 0  # noqa: S311
    assert misfit(original, PodShape) is None
    for _ in range(300):
        changed = mutated(original, chance)
        if misfit(changed, PodShape) is None:
            passed += 1
            decide(changed, NODE)
    assert 50 < passed < 290


def test_a_running_container_without_a_start_and_a_condition_without_a_status_are_let_in():
    life = Life(pod())
    life.status["conditions"].append({"type": "example.com/x", "status": ""})
    life.status["containerStatuses"][0]["state"]["running"] = {"startedAt": None}
    assert misfit(life.pod, PodShape) is None
    life.look()
    assert life.status["containerStatuses"][0]["state"]["running"] == {"startedAt": timestamp(NOW)}
    assert life.delete().status["phase"] == "Succeeded"


@pytest.mark.parametrize("field", ["initContainers", "containers", "ephemeralContainers"])
def test_a_container_has_a_name(field):
    assert misfit(pod(**{field: [{}]}), PodShape) is not None


@pytest.mark.parametrize("seed", range(4))
def test_a_node_that_is_let_in_can_be_decided_for(seed):
    chance, the_pod = random.Random(seed), rich_pod()  # noqa: S311
    metadata = {"name": "n1", "uid": "u", "resourceVersion": "1", "labels": {"zone": "a"}}
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}]
    taints = [{"key": "k", "value": "v", "effect": "NoExecute"}]
    node = {
        "metadata": metadata,
        "spec": {"podCIDRs": ["10.0.0.0/24"], "podCIDR": "10.0.0.0/24", "taints": taints},
        "status": {"addresses": addresses, "allocatable": {"cpu": "2", "pods": "3"}},
    }
    for _ in range(300):
        changed = mutated(node, chance)
        if misfit(changed, NodeShape) is None:
            decide(the_pod, changed)
