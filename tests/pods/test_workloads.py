"""Workloads of a real cluster, with its scheduler and controllers, on a node of ours: what is asked for happens."""

from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import JSON_PATCH
from tests.cluster.node_view import is_ready
from tests.cluster.waiting import eventually
from tests.pods.home import Home

EVERYTHING = [{"operator": "Exists"}]  # what the DaemonSets of kind tolerate
SOON = {"fake-kubelet.dev/run-for": "1s"}


def image_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def is_failed(pod: dict[str, Any]) -> bool:
    return bool(pod["status"]["phase"] == "Failed")


def addresses(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["status"]["podIP"] for pod in pods]


def test_a_deployment_of_fifty_comes_up_rolls_over_and_goes(home: Home) -> None:
    home.start()
    home.create(home.workload("Deployment", "web", replicas=50))
    home.wait_until_rolled_out("Deployment", "web")
    assert len(set(addresses(home.pods()))) == 50
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "pause:2"}]
    home.patch("Deployment", "web", image, JSON_PATCH)
    home.wait_until_rolled_out("Deployment", "web")
    eventually(lambda: {image_of(pod) for pod in home.pods()} == {"pause:2"})
    home.delete("Deployment", "web")
    home.wait_until_empty()
    assert [request for request in home.requests() if request["responseStatus"]["code"] == 403] == []


def test_stateful_and_daemon_sets_become_ready(home: Home) -> None:
    home.start("--register-with-taints=example.com/only=me:NoSchedule")
    home.create(
        home.workload("StatefulSet", "db", replicas=3, serviceName="db", tolerations=EVERYTHING),
        home.workload("DaemonSet", "net", tolerations=EVERYTHING),
    )
    home.wait_until_rolled_out("StatefulSet", "db")
    home.wait_until_rolled_out("DaemonSet", "net")
    assert {"db-0", "db-1", "db-2"} < home.phases().keys()


def test_a_job_completes_and_one_that_fails_is_seen_to_fail(home: Home) -> None:
    home.start()
    home.create(
        home.job("good", SOON, completions=3, parallelism=3),
        home.job("bad", SOON | {"fake-kubelet.dev/exit-code": "3"}, backoffLimit=1),
        home.job("plain", {}),
    )
    home.wait_until_finished("Job", "good", "Complete")
    home.wait_until_finished("Job", "plain", "Complete")
    home.wait_until_finished("Job", "bad", "Failed")
    home.delete("Job", "good", "plain", "bad")
    home.wait_until_empty()


def test_the_plain_command_of_a_job_decides_whether_it_fails(home: Home) -> None:
    home.start("--job-run-for=1h")  # which is for the commands that nobody understands
    for name, script in (("good", "sleep 1; false || true"), ("bad", "echo hi; sleep 1; exit 1")):
        job = home.job(name, {})  # on this node: there are others
        job["spec"]["template"]["spec"]["containers"][0] |= {"image": "busybox", "command": ["sh", "-c", script]}
        home.create(job)
    home.wait_until_finished("Job", "good", "Complete")
    eventually(lambda: home.api.get(home.path("Job", "bad"))["status"].get("failed", 0) > 0)
    ended = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in home.pods() if is_failed(pod)]
    assert {state["exitCode"] for state in ended} == {1}
    home.delete("Job", "good", "bad")
    home.wait_until_empty()


def test_a_cron_job_learns_that_its_job_succeeded(home: Home) -> None:
    home.start()
    # Suspended, and its job made by hand: a schedule would let the test wait for the next full minute.
    spec = {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": home.job("", SOON)["spec"]}}
    home.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec})
    home.kubectl("create", "job", "now", "--from=cronjob/tick")
    eventually(lambda: home.api.get(home.path("CronJob", "tick"))["status"].get("lastSuccessfulTime"))
    home.delete("CronJob", "tick")
    home.wait_until_empty()


def test_a_drain_finishes(home: Home) -> None:
    home.start()
    home.create(
        home.workload("Deployment", "web", replicas=5), home.workload("DaemonSet", "net", tolerations=EVERYTHING)
    )
    home.wait_until_rolled_out("Deployment", "web")
    home.wait_until_rolled_out("DaemonSet", "net")
    home.kubectl("drain", home.name, "--ignore-daemonsets", "--timeout=120s")
    left = [pod["metadata"]["name"] for pod in home.pods() if pod["spec"].get("nodeName")]
    assert all(name.startswith("net-") for name in left)


def test_a_taint_that_evicts_removes_pods_and_their_place_is_taken_again_without_it(home: Home) -> None:
    home.start()
    home.create(home.workload("Deployment", "web", replicas=3))
    home.wait_until_running(3)
    before = {pod["metadata"]["uid"] for pod in home.pods()}
    home.plane.kubectl("taint", "node", home.name, "example.com/out=now:NoExecute")
    eventually(lambda: not before & {pod["metadata"]["uid"] for pod in home.pods()})
    home.plane.kubectl("taint", "node", home.name, "example.com/out-")
    home.wait_until_running(3)


def test_a_workload_survives_the_deletion_of_its_node(home: Home) -> None:
    home.start()
    home.create(home.workload("Deployment", "web", replicas=3))
    home.wait_until_running(3)
    uid = home.node()["metadata"]["uid"]
    home.delete_node()
    eventually(lambda: home.node()["metadata"]["uid"] != uid)
    # The pods are collected with the old Node, or the new one has taken them over: who is faster is nobody's promise.
    home.wait_until_running(3)
    home.delete("Deployment", "web")
    home.wait_until_empty()


def test_what_was_deleted_while_nobody_was_there_ends_when_somebody_is(home: Home) -> None:
    agent = home.start()
    home.create(*(home.bare_pod(f"pod-{number}") for number in range(3)), home.bare_pod("kept"))
    home.wait_until_running(4)
    before = home.pod("kept")
    agent.stop()
    home.delete("Pod", "pod-0", "pod-1")
    home.delete_by_force("pod-2")
    home.create(home.bare_pod("late"))
    assert len(home.pods()) == 4
    home.start()
    eventually(lambda: home.phases() == {"kept": "Running", "late": "Running"})
    assert home.pod("kept")["status"] == before["status"]  # adopted, not restarted


def test_who_deletes_by_force_has_the_place_at_once_and_the_name(home: Home) -> None:
    home.start("--max-pods=2")
    home.create(home.bare_pod("kept"), home.bare_pod("forced"))
    home.wait_until_running(2)
    uids = set()
    for _ in range(5):
        uids.add(home.pod("forced")["metadata"]["uid"])
        home.delete_by_force("forced")
        home.create(home.bare_pod("forced"))  # were the old one still counted, there would be no room for it
        home.wait_until_phase("forced", "Running")
    assert home.phases() == {"kept": "Running", "forced": "Running"}
    assert home.pod("forced")["metadata"]["uid"] not in uids
    eventually(lambda: home.pod_events("Killing"))
    home.delete("Pod", "forced", "kept")
    home.wait_until_empty()


def test_pods_that_get_no_time_to_end_are_told_to_end_once_each(home: Home) -> None:
    agent = home.start()
    names = {f"pod-{number}" for number in range(60)}
    home.create(*(home.bare_pod(name, terminationGracePeriodSeconds=0) for name in names))
    home.wait_until_running(len(names))
    home.delete_pods()
    home.wait_until_empty()
    eventually(lambda: names == set(home.pod_events("Killing")))
    agent.stop()  # whatever else it had to tell is there then
    assert sorted(home.pod_events("Killing")) == sorted(names)


def test_a_pod_takes_its_time_to_end_but_no_more_than_it_may(home: Home) -> None:
    home.start()
    slow = {"fake-kubelet.dev/stop-after": "1h"}
    home.create(home.bare_pod("slow", annotations=slow, terminationGracePeriodSeconds=3))
    home.wait_until_running(1)
    home.patch("Pod", "slow", {"metadata": {"finalizers": ["example.com/look"]}})
    home.delete("Pod", "slow")
    ended = home.wait_until_phase("slow", "Failed")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    eventually(lambda: home.pod("slow")["metadata"]["deletionGracePeriodSeconds"] == 0)
    home.patch("Pod", "slow", {"metadata": {"finalizers": None}})
    home.wait_until_empty()
    home.create(home.bare_pod("later"))
    # What it asked for before this is in the audit log once this is.
    eventually(lambda: [request for request in home.requests() if request["objectRef"].get("name") == "later"])
    assert len([request for request in home.requests() if request["verb"] == "delete"]) == 1


def test_a_readiness_gate_opens_the_pod(home: Home) -> None:
    home.start()
    home.create(home.bare_pod("gated", readinessGates=[{"conditionType": "example.com/open"}]))
    home.wait_until_running(1)
    condition = {"type": "example.com/open", "status": "True"}
    home.patch_status("gated", {"conditions": [condition]})
    eventually(lambda: is_ready(home.pod("gated")))


def test_an_odd_status_does_not_stop_a_pod_or_the_others(home: Home) -> None:
    agent = home.start()
    home.create(home.bare_pod("odd"))
    home.wait_until_running(1)
    [container] = home.pod("odd")["status"]["containerStatuses"]
    odd = {"conditions": [{"type": "example.com/odd"}], "containerStatuses": [{**container, "state": {"running": {}}}]}
    home.patch_status("odd", odd)
    home.create(home.bare_pod("other"))
    home.wait_until_running(2)
    conditions = home.pod("odd")["status"]["conditions"]
    assert next(one["status"] for one in conditions if one["type"] == "example.com/odd") == ""
    home.delete("Pod", "odd", "other")
    home.wait_until_empty()
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
    home.delete("Pod", shown)
    eventually(lambda: home.pod(shown)["metadata"]["uid"] != first["metadata"]["uid"])
    home.wait_until_running(1)
    pod["spec"]["containers"][0]["image"] = "pause:2"
    manifest.write_text(yaml.safe_dump(pod))
    eventually(lambda: image_of(home.pod(shown)) == "pause:2")
    manifest.unlink()
    home.wait_until_empty()
    assert [request for request in home.requests() if request["responseStatus"]["code"] == 403] == []


def test_refused_pods_fail_and_can_be_deleted(home: Home) -> None:
    home.start("--pods=refuse")
    home.create(home.bare_pod("unwanted"))
    assert home.wait_until_phase("unwanted", "Failed")["status"]["reason"] == "PodsRefused"
    home.delete("Pod", "unwanted")
    home.wait_until_empty()


def test_ignored_pods_are_left_alone(home: Home) -> None:
    home.start("--pods=ignore", "--node-lease-duration-seconds=4")
    home.create(home.bare_pod("unseen"))
    for _ in range(2):  # it has lived on for a while since then
        home.wait_until_renewed()
    assert home.pod("unseen")["status"]["phase"] == "Pending"
    assert [request for request in home.requests() if request["objectRef"]["resource"] == "pods"] == []
