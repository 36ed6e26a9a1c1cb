import pytest

from agent.core.pods.resources import pod_limits, pod_requests, qos_class
from agent.core.quantity import format_amounts
from tests.unit.core.pods.builders import container, pod


def asking(name="main", limits=None, **requests):
    return container(name, resources={"requests": requests, "limits": limits or {}})


def side(name, **requests):
    return asking(name, **requests) | {"restartPolicy": "Always"}


# The figures are those of the enhancement proposal for sidecars, and of Kubernetes' own tests.
@pytest.mark.parametrize(
    ("the_pod", "total"),
    [
        (pod(), {}),
        (pod(asking("a", cpu="1"), asking("b", cpu="500m", memory="1Gi")), {"cpu": "1500m", "memory": "1Gi"}),
        (pod(asking(cpu="1"), initContainers=[asking("i", cpu="3")]), {"cpu": "3"}),
        (pod(asking(cpu="1"), initContainers=[side("s", cpu="2"), asking("i", cpu="2")]), {"cpu": "4"}),
        (pod(asking(cpu="1"), initContainers=[asking("i", cpu="2"), side("s", cpu="2")]), {"cpu": "3"}),
        (pod(asking(cpu="1"), overhead={"cpu": "100m"}), {"cpu": "1100m"}),
        (pod(asking(cpu="1"), resources={"requests": {"cpu": "4"}}), {"cpu": "4"}),
    ],
    ids=["nothing", "sum", "init is more", "init beside a sidecar", "init before a sidecar", "overhead", "pod level"],
)
def test_the_requests_of_a_pod(the_pod, total):
    assert format_amounts(pod_requests(the_pod)) == total


def test_overhead_is_added_to_limits_that_there_are():
    the_pod = pod(asking(limits={"cpu": "1"}), overhead={"cpu": "100m", "memory": "1Mi"})
    assert format_amounts(pod_limits(the_pod)) == {"cpu": "1100m"}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("the_pod", "expected"),
    [
        (pod(status={}), "BestEffort"),
        (pod(asking(**{"ephemeral-storage": "1Gi"}), status={}), "BestEffort"),
        (pod(asking(cpu="0"), status={}), "BestEffort"),
        (pod(asking(limits=BOTH, **BOTH), status={}), "Guaranteed"),
        (pod(asking(limits=BOTH, cpu="1000m", memory="1024Mi"), status={}), "Guaranteed"),
        (pod(asking(limits=BOTH, cpu="1"), status={}), "Burstable"),
        (pod(asking(limits=BOTH), status={}), "Burstable"),
        (pod(asking("a", limits=BOTH, **BOTH), container("b"), status={}), "Burstable"),
        (pod(resources={"requests": BOTH, "limits": BOTH}, status={}), "Guaranteed"),
        (pod(status={"qosClass": "Burstable"}), "Burstable"),
    ],
    ids=[
        "none",
        "storage",
        "zero",
        "equal",
        "equal in value",
        "no memory",
        "limits alone",
        "one of two",
        "pod level",
        "told before",
    ],
)
def test_the_class_of_service(the_pod, expected):
    assert qos_class(the_pod) == expected
