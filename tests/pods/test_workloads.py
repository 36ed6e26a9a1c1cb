"""Workloads of a real cluster, with its scheduler and controllers, on a node of ours: what is asked for happens."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.waiting import eventually
from tests.pods.home import Home

EVERYTHING = [{"operator": "Exists"}]  # what the DaemonSets of kind tolerate
SOON = {"fake-kubelet.dev/run-for": "1s"}


def addresses(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["status"]["podIP"] for pod in pods]


def test_a_deployment_of_fifty_comes_up_rolls_over_and_goes(home: Home) -> None:
    home.start()
    home.apply(home.workload("Deployment", "web", replicas=50))
    home.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert len(set(addresses(home.pods()))) == 50
    home.kubectl("set", "image", "deployment/web", "main=pause:2")
    home.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    home.kubectl("delete", "deployment", "web")
    home.wait_until_empty()
    assert [request for request in home.requests() if request["responseStatus"]["code"] == 403] == []


def test_stateful_and_daemon_sets_become_ready(home: Home) -> None:
    home.start("--register-with-taints=example.com/only=me:NoSchedule")
    home.apply(
        home.workload("StatefulSet", "db", replicas=3, serviceName="db", tolerations=EVERYTHING),
        home.workload("DaemonSet", "net", tolerations=EVERYTHING),
    )
    home.kubectl("rollout", "status", "statefulset/db", "--timeout=60s")
    home.kubectl("rollout", "status", "daemonset/net", "--timeout=60s")
    assert {"db-0", "db-1", "db-2"} < home.phases().keys()


def test_a_job_completes_and_one_that_fails_is_seen_to_fail(home: Home) -> None:
    home.start()
    home.apply(
        home.job("good", SOON, completions=3, parallelism=3),
        home.job("bad", SOON | {"fake-kubelet.dev/exit-code": "3"}, backoffLimit=1),
        home.job("plain", {}),
    )
    home.kubectl("wait", "--for=condition=Complete", "job/good", "job/plain", "--timeout=60s")
    home.kubectl("wait", "--for=condition=Failed", "job/bad", "--timeout=90s")
    home.kubectl("delete", "jobs", "--all")
    home.wait_until_empty()


def test_a_cron_job_learns_that_its_job_succeeded(home: Home) -> None:
    home.start()
    # Suspended, and its job made by hand: a schedule would let the test wait for the next full minute.
    spec = {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": home.job("", SOON)["spec"]}}
    home.apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec})
    home.kubectl("create", "job", "now", "--from=cronjob/tick")
    home.kubectl("wait", "--for=jsonpath={.status.lastSuccessfulTime}", "cronjob/tick", "--timeout=60s")
    home.kubectl("delete", "cronjob", "tick")
    home.wait_until_empty()


def test_a_drain_finishes(home: Home) -> None:
    home.start()
    home.apply(
        home.workload("Deployment", "web", replicas=5), home.workload("DaemonSet", "net", tolerations=EVERYTHING)
    )
    home.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    home.kubectl("rollout", "status", "daemonset/net", "--timeout=60s")
    home.plane.kubectl("drain", home.name, "--ignore-daemonsets", "--timeout=40s")
    left = [pod["metadata"]["name"] for pod in home.pods() if pod["spec"].get("nodeName")]
    assert all(name.startswith("net-") for name in left)


def test_a_taint_that_evicts_removes_pods_and_their_place_is_taken_again_without_it(home: Home) -> None:
    home.start()
    home.apply(home.workload("Deployment", "web", replicas=3))
    home.wait_until_running(3)
    before = {pod["metadata"]["uid"] for pod in home.pods()}
    home.plane.kubectl("taint", "node", home.name, "example.com/out=now:NoExecute")
    eventually(lambda: not before & {pod["metadata"]["uid"] for pod in home.pods()}, within=30)
    home.plane.kubectl("taint", "node", home.name, "example.com/out-")
    home.wait_until_running(3)


def test_a_workload_survives_the_deletion_of_its_node(home: Home) -> None:
    home.start()
    home.apply(home.workload("Deployment", "web", replicas=3))
    home.wait_until_running(3)
    home.plane.kubectl("delete", "node", home.name)
    home.kubectl("wait", "--for=create", f"node/{home.name}", "--timeout=30s")
    # The pods are collected with the old Node, or the new one has taken them over: who is faster is nobody's promise.
    home.wait_until_running(3)
    home.kubectl("delete", "deployment", "web")
    home.wait_until_empty()


def test_what_was_deleted_while_nobody_was_there_ends_when_somebody_is(home: Home) -> None:
    agent = home.start()
    home.apply(*(home.bare_pod(f"pod-{number}") for number in range(3)), home.bare_pod("kept"))
    home.wait_until_running(4)
    before = home.pod("kept")
    agent.stop()
    home.kubectl("delete", "pod", "pod-0", "pod-1", "--wait=false")
    home.kubectl("delete", "pod", "pod-2", "--force", "--grace-period=0")
    home.apply(home.bare_pod("late"))
    assert len(home.pods()) == 4
    home.start()
    eventually(lambda: home.phases() == {"kept": "Running", "late": "Running"}, within=20)
    assert home.pod("kept")["status"] == before["status"]  # adopted, not restarted


def test_who_deletes_by_force_has_the_place_at_once_and_the_name(home: Home) -> None:
    home.start("--max-pods=2")
    home.apply(home.bare_pod("kept"), home.bare_pod("forced"))
    home.wait_until_running(2)
    uids = set()
    for _ in range(5):
        uids.add(home.pod("forced")["metadata"]["uid"])
        home.kubectl("delete", "pod", "forced", "--force", "--grace-period=0")
        home.apply(home.bare_pod("forced"))  # were the old one still counted, there would be no room for it
        home.kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/forced", "--timeout=30s")
    assert home.phases() == {"kept": "Running", "forced": "Running"}
    assert home.pod("forced")["metadata"]["uid"] not in uids
    eventually(lambda: "Killing" in home.kubectl("get", "events", "--output=jsonpath={.items[*].reason}"), within=20)
    home.kubectl("delete", "pod", "forced", "kept", "--timeout=30s")


def test_pods_that_get_no_time_to_end_are_told_to_end_once_each(home: Home) -> None:
    agent = home.start()
    names = {f"pod-{number}" for number in range(60)}
    home.apply(*(home.bare_pod(name, terminationGracePeriodSeconds=0) for name in names))
    home.wait_until_running(len(names))
    home.kubectl("delete", "pods", "--all")
    home.wait_until_empty()

    def told() -> list[str]:
        path = "--output=jsonpath={.items[*].involvedObject.name}"
        return home.kubectl("get", "events", "--field-selector=reason=Killing", path).split()

    eventually(lambda: names == set(told()), within=30)
    agent.stop()  # whatever else it had to tell is there then
    assert sorted(told()) == sorted(names)


def test_a_pod_takes_its_time_to_end_but_no_more_than_it_may(home: Home) -> None:
    home.start()
    slow = {"fake-kubelet.dev/stop-after": "1h"}
    home.apply(home.bare_pod("slow", annotations=slow, terminationGracePeriodSeconds=3))
    home.wait_until_running(1)
    home.kubectl("patch", "pod", "slow", "--patch", json.dumps({"metadata": {"finalizers": ["example.com/look"]}}))
    home.kubectl("delete", "pod", "slow", "--wait=false")
    ended = eventually(lambda: home.pod("slow") if home.phases()["slow"] == "Failed" else None, within=15)
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    eventually(lambda: home.pod("slow")["metadata"]["deletionGracePeriodSeconds"] == 0, within=10)
    home.kubectl("patch", "pod", "slow", "--type=json", "--patch", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    home.wait_until_empty()
    assert len([request for request in home.requests() if request["verb"] == "delete"]) == 1


def test_a_readiness_gate_opens_the_pod(home: Home) -> None:
    home.start()
    home.apply(home.bare_pod("gated", readinessGates=[{"conditionType": "example.com/open"}]))
    home.wait_until_running(1)
    condition = {"type": "example.com/open", "status": "True"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    home.kubectl("patch", "pod", "gated", "--subresource=status", "--patch", patch)
    home.kubectl("wait", "--for=condition=Ready", "pod/gated", "--timeout=15s")


def test_an_odd_status_does_not_stop_a_pod_or_the_others(home: Home) -> None:
    agent = home.start()
    home.apply(home.bare_pod("odd"))
    home.wait_until_running(1)
    [container] = home.pod("odd")["status"]["containerStatuses"]
    odd = {"conditions": [{"type": "example.com/odd"}], "containerStatuses": [{**container, "state": {"running": {}}}]}
    home.kubectl("patch", "pod", "odd", "--subresource=status", "--patch", json.dumps({"status": odd}))
    home.apply(home.bare_pod("other"))
    home.wait_until_running(2)
    conditions = home.pod("odd")["status"]["conditions"]
    assert next(one["status"] for one in conditions if one["type"] == "example.com/odd") == ""
    home.kubectl("delete", "pod", "odd", "other", "--timeout=30s")
    assert "makes no sense" not in agent.log_text()


def test_a_static_pod_is_shown_shown_again_and_goes_with_its_file(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    pod = home.bare_pod("etcd")
    pod["metadata"]["namespace"] = home.name
    del pod["spec"]["nodeName"]
    manifest, shown = folder / "etcd.yaml", f"etcd-{home.name}"
    manifest.write_text(yaml.safe_dump(pod))
    (folder / "broken.yaml").write_text("{")
    home.start(f"--pod-manifest-path={folder}", "--file-check-frequency=1s")
    home.wait_until_running(1)
    first = home.pod(shown)
    assert first["metadata"]["ownerReferences"][0]["uid"] == home.plane.get("node", home.name)["metadata"]["uid"]
    home.kubectl("delete", "pod", shown, "--wait=false")
    eventually(lambda: home.pod(shown)["metadata"]["uid"] != first["metadata"]["uid"], within=20)
    home.wait_until_running(1)
    pod["spec"]["containers"][0]["image"] = "pause:2"
    manifest.write_text(yaml.safe_dump(pod))
    eventually(lambda: home.pod(shown)["spec"]["containers"][0]["image"] == "pause:2", within=20)
    manifest.unlink()
    home.wait_until_empty()
    assert [request for request in home.requests() if request["responseStatus"]["code"] == 403] == []


def test_refused_pods_fail_and_can_be_deleted(home: Home) -> None:
    home.start("--pods=refuse")
    home.apply(home.bare_pod("unwanted"))
    home.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/unwanted", "--timeout=15s")
    assert home.pod("unwanted")["status"]["reason"] == "PodsRefused"
    home.kubectl("delete", "pod", "unwanted", "--timeout=15s")


def test_ignored_pods_are_left_alone(home: Home) -> None:
    home.start("--pods=ignore")
    home.apply(home.bare_pod("unseen"))
    eventually(home.requests, within=10)
    assert home.pod("unseen")["status"]["phase"] == "Pending"
    assert [request for request in home.requests() if request["objectRef"]["resource"] == "pods"] == []
