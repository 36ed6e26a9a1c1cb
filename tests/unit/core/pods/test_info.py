from datetime import UTC, datetime

from agent.core.pods.info import pod_info, pod_stats

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME, SINCE = "2026-01-02T03:04:05Z", "2026-01-02T03:00:00Z"
RUNNING, OVER = {"running": {"startedAt": SINCE}}, {"terminated": {"exitCode": 0}}
NOTHING = {
    "cpu": {"time": TIME, "usageNanoCores": 0, "usageCoreNanoSeconds": 0},
    "memory": {"time": TIME, "usageBytes": 0, "workingSetBytes": 0, "rssBytes": 0},
}


def pod(name="p", **status):
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "labels": {}}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


def statuses(**states):
    return [{"name": name, "state": state} for name, state in states.items()]


def test_a_running_pod_is_told_with_the_containers_that_run():
    running = pod(
        startTime="2026-01-02T02:59:59Z",
        initContainerStatuses=statuses(setup=OVER, sidecar=RUNNING),
        containerStatuses=statuses(main=RUNNING),
    )
    assert list(pod_stats([pod_info(running)], NOW)) == [
        {
            "podRef": {"name": "p", "namespace": "ns", "uid": "uid-p"},
            "startTime": "2026-01-02T02:59:59Z",
            "containers": [{"name": name, "startTime": SINCE, **NOTHING} for name in ("sidecar", "main")],
            **NOTHING,
        }
    ]


def test_pods_without_a_running_container_are_left_out():
    ended = pod("ended", startTime=SINCE, containerStatuses=statuses(main=OVER))
    assert list(pod_stats(map(pod_info, [pod("new"), ended]), NOW)) == []
