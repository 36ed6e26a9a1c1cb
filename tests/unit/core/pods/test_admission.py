import pytest

from agent.core.pods.admission import (
    AdmissionContext,
    is_preemptable,
    rejected_status,
    rejection,
    still_missing,
    victims,
)
from agent.core.pods.info import pod_info
from agent.core.pods.resources import PodRequest, request_of
from agent.core.shutdown import SHUTTING_DOWN
from tests.unit.core.pods.builders import NODE, container, expression, pod, required

MEMORY_TOLERATION = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}


def requests(**amounts):
    return container(resources={"requests": amounts})


def port(number, **more):
    return container(ports=[{"containerPort": 80, "hostPort": number, **more}])


def refused(the_pod, *others, **context):
    claims = tuple(request_of(other) for other in others)
    found = rejection(the_pod, request_of(the_pod), AdmissionContext(**({"node": NODE, "others": claims} | context)))
    return found and (found.reason, found.message)


def test_a_modest_pod_is_taken_on():
    assert refused(pod(requests(cpu="1"))) is None


@pytest.mark.parametrize(
    ("the_pod", "others", "told"),
    [
        (pod(requests(cpu="1500m")), [pod(requests(cpu="600m"))], "cpu, requested: 1500, used: 600, capacity: 2000"),
        (
            pod(requests(memory="2Gi")),
            [],
            "memory, requested: 2147483648, used: 0, capacity: 1073741824",
        ),
        (pod(requests(cpu="3", memory="2Gi")), [], "cpu, requested: 3000, used: 0, capacity: 2000"),
        (pod(), [pod(), pod(), pod()], "pods, requested: 1, used: 3, capacity: 3"),
        (
            pod(requests(**{"example.com/gpu": "1"})),
            [pod(requests(**{"example.com/gpu": "1"}))],
            "example.com/gpu, requested: 1, used: 1, capacity: 1",
        ),
    ],
    ids=["cpu", "memory", "the first that is short", "pods", "extended"],
)
def test_more_than_there_is_left_is_refused(the_pod, others, told):
    reason = f"OutOf{told.partition(',')[0]}"
    assert refused(the_pod, *others) == (reason, f"Node didn't have enough resource: {told}")


def test_all_that_is_left_can_be_had():
    assert refused(pod(requests(cpu="1400m", memory="1Gi")), pod(requests(cpu="600m"))) is None


def test_one_of_several_affinity_terms_is_enough():
    affinity = required(expression("zone", "In", "b"))
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    terms.append({"matchExpressions": [expression("zone", "In", "a")]})
    assert refused(pod(affinity=affinity)) is None


def test_an_extended_resource_that_the_node_lacks_is_somebody_elses_business():
    assert refused(pod(requests(**{"example.com/other": "1"}))) is None


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": required(expression("zone", "In", "a", "b"))}, True),
        ({"affinity": required(expression("zone", "NotIn", "a"))}, False),
        ({"affinity": required(expression("none", "NotIn", "a"))}, True),
        ({"affinity": required(expression("zone", "Exists"), expression("none", "DoesNotExist"))}, True),
        ({"affinity": required(expression("size", "Gt", "4"))}, True),
        ({"affinity": required(expression("size", "Lt", "4"))}, False),
        ({"affinity": required(expression("zone", "Gt", "4"))}, False),
        ({"affinity": required()}, False),
    ],
    ids=["label", "other label", "in", "not in", "not there", "exists", "greater", "less", "no number", "empty term"],
)
def test_a_pod_for_other_nodes_is_refused(spec, fits):
    found = refused(pod(**spec))
    told = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    assert found == (None if fits else ("NodeAffinity", told))


@pytest.mark.parametrize(
    ("wanted", "taken", "fits"),
    [
        (port(80), port(81), True),
        (port(80), port(80), False),
        (port(80), port(80, protocol="UDP"), True),
        (port(80, hostIP="10.0.0.1"), port(80, hostIP="10.0.0.2"), True),
        (port(80, hostIP="10.0.0.1"), port(80), False),
    ],
)
def test_a_host_port_is_given_once(wanted, taken, fits):
    found = refused(pod(wanted), pod(taken))
    told = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    assert found == (None if fits else ("NodePorts", told))


@pytest.mark.parametrize(
    ("effect", "tolerations", "fits"),
    [
        ("NoExecute", [], False),
        ("NoSchedule", [], True),
        ("NoExecute", [{"operator": "Exists"}], True),
        ("NoExecute", [{"key": "k", "value": "v"}], True),
        ("NoExecute", [{"key": "k", "value": "w"}], False),
        ("NoExecute", [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], False),
    ],
)
def test_only_taints_that_evict_count(effect, tolerations, fits):
    node = NODE | {"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}}
    found = refused(pod(tolerations=tolerations), node=node)
    told = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    assert found == (None if fits else ("TaintToleration", told))


@pytest.mark.parametrize(
    ("pressure", "the_pod", "fits"),
    [
        ({"DiskPressure"}, pod(), False),
        ({"DiskPressure"}, pod(priority=2_000_000_000), True),
        ({"MemoryPressure"}, pod(), False),
        ({"MemoryPressure"}, pod(tolerations=[MEMORY_TOLERATION]), True),
        ({"MemoryPressure"}, pod(requests(cpu="1"), status={}), True),
        ({"MemoryPressure", "PIDPressure"}, pod(requests(cpu="1"), status={}), False),
    ],
    ids=["disk", "critical", "memory", "tolerated", "not best effort", "more than memory"],
)
def test_a_node_under_pressure_takes_only_some(pressure, the_pod, fits):
    found = refused(the_pod, pressure=frozenset(pressure))
    told = f"The node had condition: [{' '.join(sorted(pressure))}]. "
    assert found == (None if fits else ("Evicted", told))


def test_a_node_that_goes_down_takes_none():
    assert refused(pod(), problems=(SHUTTING_DOWN,)) == (
        "NodeShutdown",
        "Pod was rejected as the node is shutting down.",
    )


@pytest.mark.parametrize(
    ("name", "allowed", "fits"),
    [("net.ipv4.tcp_syncookies", (), True), ("kernel.msgmax", (), False), ("kernel.msgmax", ("kernel.msg*",), True)],
)
def test_a_sysctl_that_may_harm_others_has_to_be_allowed(name, allowed, fits):
    sysctls = {"sysctls": [{"name": name, "value": "1"}]}
    found = refused(pod(securityContext=sysctls), allowed_sysctls=allowed)
    assert found == (None if fits else ("SysctlForbidden", f'forbidden sysctl: "{name}" not allowlisted'))


@pytest.mark.parametrize(("policy", "fits"), [("Merge", True), ("Strict", False)])
def test_strict_groups_need_a_runtime_that_can_do_it(policy, fits):
    told = "SupplementalGroupsPolicy=Strict is not supported in this node"
    found = refused(pod(securityContext={"supplementalGroupsPolicy": policy}))
    assert found == (None if fits else ("SupplementalGroupsPolicyNotSupported", told))


def test_a_rejected_pod_keeps_the_conditions_of_others_only():
    conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "example.com/x", "status": "True"}]
    the_pod = pod(requests(cpu="9"), status={"phase": "Pending", "conditions": conditions})
    why = rejection(the_pod, request_of(the_pod), AdmissionContext(node=NODE, others=()))
    assert rejected_status(the_pod, why, "now") == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 2000",
        "qosClass": "Burstable",
        "startTime": "now",
        "observedGeneration": 1,
        "conditions": conditions[1:],
    }


def test_a_claim_counts_what_the_scheduler_counts():
    sidecar = container("side", restartPolicy="Always", ports=[{"hostPort": 1}])
    init = container("init", ports=[{"hostPort": 2}])
    assert request_of(pod(initContainers=[sidecar, init])) == PodRequest({}, frozenset({("0.0.0.0", "TCP", 1)}))


CRITICAL = 2_000_000_000


def candidate(name, priority=0, limited=False, **requests):
    resources = {"requests": requests, **({"limits": requests} if limited else {})}
    spec = {"priority": priority, "containers": [{"name": "c", "image": "i", "resources": resources}]}
    return pod_info({"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": spec})


def chosen(among, **missing):
    return [one.name for one in victims(among, missing)]


@pytest.mark.parametrize(
    ("one", "by", "may_go"),
    [
        (0, CRITICAL, True),
        (100, CRITICAL, True),
        (CRITICAL, CRITICAL, False),
        (CRITICAL, CRITICAL + 1000, True),
        (0, 100, False),
    ],
)
def test_only_for_a_critical_pod_and_only_those_that_matter_less(one, by, may_go):
    assert is_preemptable(candidate("a", one), by=candidate("b", by)) is may_go


def test_the_one_that_frees_enough_goes_and_the_smaller_of_two():
    pods = [candidate("small", cpu="100m"), candidate("large", cpu="2"), candidate("fits", cpu="1")]
    assert chosen(pods, cpu=800) == ["fits"]


def test_several_go_where_one_is_not_enough():
    pods = [candidate("a", cpu="100m"), candidate("b", cpu="500m"), candidate("c", cpu="400m")]
    assert chosen(pods, cpu=900) == ["b", "c"]


def test_the_least_guaranteed_go_first():
    sure = candidate("sure", limited=True, cpu="1", memory="1Gi")
    burst = candidate("burst", cpu="1")
    effort = candidate("effort")
    assert chosen([sure, burst, effort], cpu=500) == ["burst"]
    assert chosen([sure, burst, effort], cpu=1500) == ["burst", "sure"]
    assert chosen([sure, burst, effort], pods=1) == ["effort"]


def test_what_all_of_them_would_not_free_is_told():
    assert still_missing({"cpu": 1500, "pods": 1}, [candidate("a", cpu="1")]) == {"cpu": 500}
    assert still_missing({"cpu": 1000}, [candidate("a", cpu="1")]) == {}
