import pytest

from agent.core.pods.info import pod_info
from agent.core.pods.preemption import is_preemptable, still_missing, victims

CRITICAL = 2_000_000_000


def pod(name, priority=0, limited=False, **requests):
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
    assert is_preemptable(pod("a", one), by=pod("b", by)) is may_go


def test_the_one_that_frees_enough_goes_and_the_smaller_of_two():
    pods = [pod("small", cpu="100m"), pod("large", cpu="2"), pod("fits", cpu="1")]
    assert chosen(pods, cpu=800) == ["fits"]


def test_several_go_where_one_is_not_enough():
    pods = [pod("a", cpu="100m"), pod("b", cpu="500m"), pod("c", cpu="400m")]
    assert chosen(pods, cpu=900) == ["b", "c"]


def test_the_least_guaranteed_go_first():
    sure = pod("sure", limited=True, cpu="1", memory="1Gi")
    burst = pod("burst", cpu="1")
    effort = pod("effort")
    assert chosen([sure, burst, effort], cpu=500) == ["burst"]
    assert chosen([sure, burst, effort], cpu=1500) == ["burst", "sure"]
    assert chosen([sure, burst, effort], pods=1) == ["effort"]


def test_what_all_of_them_would_not_free_is_told():
    assert still_missing({"cpu": 1500, "pods": 1}, [pod("a", cpu="1")]) == {"cpu": 500}
    assert still_missing({"cpu": 1000}, [pod("a", cpu="1")]) == {}
