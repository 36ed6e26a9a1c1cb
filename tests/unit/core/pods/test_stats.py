"""What running containers use, as the endpoints show it."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from agent.core.pods.info import PodInfo, pod_info
from agent.core.pods.stats import Figures, pod_figures, pod_stats

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME, SINCE, BEGUN = "2026-01-02T03:04:05Z", "2026-01-02T03:03:45Z", "2026-01-02T03:03:55Z"
OVER = {"terminated": {"exitCode": 0}}
NOTHING = {
    "cpu": {"time": TIME, "usageNanoCores": 0, "usageCoreNanoSeconds": 0},
    "memory": {"time": TIME, "usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0},
}
MEBI, PAUSE = 2**20, 2**19


def info(annotations: dict[str, str] | None = None, **status: Any) -> PodInfo:
    """A pod that has started twenty seconds ago; its main container has, ten seconds ago."""
    running = [{"name": "main", "image": "i", "restartCount": 1, "state": {"running": {"startedAt": BEGUN}}}]
    metadata: Any = {"name": "p", "namespace": "ns", "uid": "u", "annotations": annotations or {}}
    limits = {"limits": {"cpu": "500m", "memory": "64Mi"}}
    spec: Any = {
        "initContainers": [{"name": "side", "image": "i", "restartPolicy": "Always"}],
        "containers": [{"name": "main", "image": "i", "resources": limits}],
    }
    return pod_info(
        {"metadata": metadata, "spec": spec, "status": {"startTime": SINCE, "containerStatuses": running} | status}
    )


def side(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "side", "image": "i", "restartCount": 0, "state": state}]


RUNS = {"running": {"startedAt": SINCE}}


def total(annotations: dict[str, str], at: datetime = NOW, **status: Any) -> Figures:
    (found,) = pod_figures([info(annotations, **status)], at)
    return found.total


def test_a_running_pod_is_shown_with_the_containers_that_run() -> None:
    assert list(pod_stats([info(initContainerStatuses=side(RUNS))], NOW)) == [
        {
            "podRef": {"name": "p", "namespace": "ns", "uid": "u"},
            "startTime": SINCE,
            "containers": [
                {"name": "side", "startTime": SINCE, **NOTHING},
                {"name": "main", "startTime": BEGUN, **NOTHING},
            ],
            **NOTHING,
        }
    ]
    (shown,) = pod_stats([info(initContainerStatuses=side(OVER))], NOW)
    assert [container["name"] for container in shown["containers"]] == ["main"]


def test_pods_without_a_running_container_are_left_out() -> None:
    assert list(pod_stats([info(containerStatuses=[])], NOW)) == []


def test_a_container_shows_its_usage_of_now_and_its_cpu_time_since_it_has_started() -> None:
    usage = {"fake-kubelet.dev/usage-cpu": "ramp(0,400m,40s)", "fake-kubelet.dev/usage-memory": "32Mi"}
    # Twenty seconds after the start of the pod the ramp is at 200m; ten seconds before, it was at 100m.
    assert total(usage) == Figures(200 * 10**6, 1500 * 10**6, 32 * MEBI)


def test_a_pod_uses_what_its_containers_use_together() -> None:
    usage = {"fake-kubelet.dev/usage-cpu": "100m", "usage-memory.fake-kubelet.dev/side": "1Mi"}
    assert total(usage, initContainerStatuses=side(RUNS)) == Figures(200 * 10**6, 3000 * 10**6, MEBI + PAUSE)


def test_cpu_time_never_falls_and_grows_by_the_limit_at_most() -> None:
    usage = {"fake-kubelet.dev/usage-cpu": "noise(400m,100%)"}
    times = [total(usage, NOW + timedelta(milliseconds=137 * step)).cpu_nanoseconds for step in range(1000)]
    assert all(0 <= later - earlier <= 137 * 500_000 + 1 for earlier, later in pairwise(times))
    assert times[-1] > times[0]


def test_a_container_without_a_start_and_one_that_starts_tomorrow_have_used_nothing() -> None:
    usage = {"fake-kubelet.dev/usage-cpu": "100m"}
    for state in ({"startedAt": None}, {"startedAt": "2026-01-03T00:00:00Z"}):
        running = [{"name": "main", "image": "i", "restartCount": 0, "state": {"running": state}}]
        assert total(usage, containerStatuses=running).cpu_nanoseconds == 0


def test_of_very_many_containers_the_first_ones_use_something() -> None:
    names = [f"c{number}" for number in range(1000)]
    running = [{"name": name, "image": "i", "restartCount": 0, "state": RUNS} for name in names]
    metadata: Any = {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"fake-kubelet.dev/usage-memory": "1"}}
    spec: Any = {"containers": [{"name": name, "image": "i"} for name in names]}
    (found,) = pod_figures(
        [pod_info({"metadata": metadata, "spec": spec, "status": {"containerStatuses": running}})], NOW
    )
    assert (len(found.containers), found.total.memory_bytes) == (1000, 50)
