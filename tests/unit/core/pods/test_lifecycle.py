from datetime import timedelta

import pytest

from agent.core.patch import status_patch
from agent.core.pods.lifecycle import next_status
from agent.core.pods.status import PodContext
from agent.core.pods.termination import KillRequest
from tests.unit.core.pods.builders import NOW, Life, container, pod

SIDE = container("side", restartPolicy="Always")
JOB = [{"kind": "Job", "name": "j", "uid": "x"}]


def run_for(text, *names):
    return {f"run-for.fake-kubelet.dev/{name}": text for name in names} or {"fake-kubelet.dev/run-for": text}


def test_a_pod_runs_and_is_ready_at_once():
    life = Life(pod())
    assert (life.status["phase"], life.state(), life.condition("Ready")["status"]) == ("Running", "running", "True")
    assert life.status["podIP"] == "10.0.0.2"
    assert life.told() == ["Pulled main", "Created main", "Started main"]
    assert life.next_at is None


def test_a_pod_waits_for_its_address():
    life = Life(pod())
    waiting = Life.__new__(Life)
    waiting.__dict__ |= life.__dict__ | {"pod": pod(), "ips": None, "events": []}
    waiting.look()
    assert (waiting.status["phase"], waiting.state()) == ("Pending", "ContainerCreating")
    assert waiting.condition("PodReadyToStartContainers")["status"] == "False"


def test_a_pod_on_the_host_network_has_the_nodes_address():
    assert Life(pod(hostNetwork=True)).status["podIPs"] == [{"ip": "192.0.2.1"}]


def test_init_containers_run_one_after_the_other_and_before_all_others():
    life = Life(pod(initContainers=[container("one"), container("two")], annotations=run_for("5s", "one", "two")))
    assert [life.state(name) for name in ("one", "two", "main")] == ["running", "PodInitializing", "PodInitializing"]
    life.after(5)
    assert [life.state(name) for name in ("one", "two", "main")] == ["ended 0", "running", "PodInitializing"]
    life.after(5)
    assert [life.state(name) for name in ("one", "two", "main")] == ["ended 0", "ended 0", "running"]
    assert [word for word in life.told() if word.startswith("Started")] == [
        "Started one",
        "Started two",
        "Started main",
    ]


def test_an_init_container_that_fails_is_tried_again():
    failing = run_for("1s", "one") | {"exit-code.fake-kubelet.dev/one": "1"}
    life = Life(pod(initContainers=[container("one")], annotations=failing)).after(2.5)
    assert (life.status["phase"], life.state("one"), life.restarts("one")) == ("Pending", "CrashLoopBackOff", 1)


def test_an_init_container_that_fails_ends_a_pod_that_is_never_restarted():
    failing = run_for("1s", "one") | {"exit-code.fake-kubelet.dev/one": "1"}
    life = Life(pod(initContainers=[container("one")], annotations=failing, restartPolicy="Never")).after(2)
    assert (life.status["phase"], life.state("one"), life.state()) == ("Failed", "ended 1", "PodInitializing")


def test_one_container_that_failed_is_a_failed_pod():
    ending = run_for("1s") | {"exit-code.fake-kubelet.dev/second": "1"}
    life = Life(pod(container(), container("second"), restartPolicy="Never", annotations=ending)).after(2)
    assert (life.state(), life.state("second"), life.status["phase"]) == ("ended 0", "ended 1", "Failed")
    ends = [one["state"]["terminated"]["reason"] for one in life.status["containerStatuses"]]
    assert ends == ["Completed", "Error"]


def test_a_container_that_is_run_again_tells_how_it_ended_before():
    failing = run_for("5s") | {"exit-code.fake-kubelet.dev/main": "3"}
    (status,) = Life(pod(annotations=failing)).after(6).status["containerStatuses"]
    assert (list(status["state"]), status["lastState"]["terminated"]["exitCode"]) == (["running"], 3)


def test_a_pod_that_the_node_ends_was_killed():
    life = Life(pod())
    life.order = KillRequest("Evicted", "The node was low on resource: memory. ", 1.0, life.now)
    life.look()
    assert (life.status["phase"], life.status["reason"], life.state()) == ("Failed", "Evicted", "ended 137")


def test_holding_a_container_back_is_a_warning():
    failing = run_for("1s") | {"exit-code.fake-kubelet.dev/main": "1"}
    events = Life(pod(annotations=failing)).after(3).events
    assert {event.reason: event.type for event in events} == {
        "Pulled": "Normal",
        "Created": "Normal",
        "Started": "Normal",
        "BackOff": "Warning",
    }


def test_a_status_is_for_this_very_pod():
    the_pod = pod()
    assert status_patch(the_pod, {**the_pod["status"], "phase": "Running"}) == {
        "metadata": {"uid": "u1"},
        "status": {"phase": "Running"},
    }
    assert status_patch(the_pod, the_pod["status"]) is None


def test_the_first_reason_to_end_counts():
    life = Life(pod(activeDeadlineSeconds=100)).after(1).delete()
    assert (life.status["phase"], life.status.get("reason"), life.state()) == ("Succeeded", None, "ended 0")


def test_a_condition_of_a_pod_has_the_time_of_its_last_change():
    life = Life(pod(container(readinessProbe={"initialDelaySeconds": 5})))
    began = life.condition("PodScheduled")["lastTransitionTime"]
    life.after(5)
    assert life.condition("Ready")["lastTransitionTime"] != began
    assert life.condition("PodScheduled")["lastTransitionTime"] == began


def test_a_pod_keeps_the_address_that_it_was_given():
    life = Life(pod())
    context = PodContext(now=life.now, host_ips=("192.0.2.1",), pod_ips=("10.0.0.3",), job_seconds=1.0)
    status = next_status(life.pod, context).status
    assert (status["podIP"], status["podIPs"]) == ("10.0.0.2", [{"ip": "10.0.0.2"}])


def test_a_sidecar_is_up_before_the_containers_and_ends_after_them():
    life = Life(pod(initContainers=[SIDE], restartPolicy="Never", annotations=run_for("5s")))
    assert [life.state(name) for name in ("side", "main")] == ["running", "running"]
    life.after(5)
    assert (life.status["phase"], life.state("side"), life.state()) == ("Succeeded", "ended 0", "ended 0")
    assert life.told()[-1] == "Killing side"


def test_a_sidecar_that_is_not_started_holds_the_others_back():
    slow = SIDE | {"startupProbe": {"initialDelaySeconds": 7}}
    life = Life(pod(initContainers=[slow])).after(6)
    assert (life.status["phase"], life.state()) == ("Pending", "PodInitializing")
    assert life.after(1).state() == "running"


def test_probes_succeed_when_they_are_first_due():
    life = Life(pod(container(readinessProbe={"initialDelaySeconds": 5})))
    assert life.condition("Ready")["reason"] == "ContainersNotReady"
    assert life.after(5).condition("Ready")["status"] == "True"


@pytest.mark.parametrize(
    ("policy", "code", "phase", "restarts"),
    [
        ("Always", 0, "Running", 1),
        ("OnFailure", 1, "Running", 1),
        ("OnFailure", 0, "Succeeded", 0),
        ("Never", 0, "Succeeded", 0),
        ("Never", 1, "Failed", 0),
    ],
)
def test_the_restart_policy_decides_what_follows_an_end(policy, code, phase, restarts):
    words = run_for("10s") | {"fake-kubelet.dev/exit-code": str(code)}
    life = Life(pod(restartPolicy=policy, annotations=words)).after(11)
    assert (life.status["phase"], life.restarts()) == (phase, restarts)


def test_a_container_that_ends_again_and_again_is_held_back_ever_longer():
    life = Life(pod(annotations=run_for("0s") | {"fake-kubelet.dev/exit-code": "1"}))
    assert (life.restarts(), life.state(), life.status["phase"]) == (1, "CrashLoopBackOff", "Running")
    starts = []
    for second in range(700):
        before = life.restarts()
        if life.after(1).restarts() > before:
            starts.append(second + 1)
    assert starts == [10, 30, 70, 150, 310, 610]
    assert life.told().count("BackOff main") == 6  # the last one tells the same as the one before


def test_a_container_that_ran_for_long_is_not_held_back():
    life = Life(pod(annotations=run_for("11m"))).after(11 * 60).after(11 * 60)
    assert (life.restarts(), life.state()) == (2, "running")


def test_a_pod_of_a_job_completes_by_itself():
    life = Life(pod(restartPolicy="Never", ownerReferences=JOB)).after(9)
    assert life.status["phase"] == "Running"
    assert life.after(1).status["phase"] == "Succeeded"
    assert life.condition("Ready")["reason"] == "PodCompleted"
    assert "Killing main" not in life.told()


def shell(script):
    return {"command": ["sh", "-c", script]}


def test_a_plain_command_decides_how_long_a_container_runs_and_how_it_ends():
    life = Life(pod(container(**shell("echo hi; sleep 5; exit 3")), restartPolicy="Never", ownerReferences=JOB))
    assert life.after(4).state() == "running"
    assert (life.after(1).state(), life.status["phase"]) == ("ended 3", "Failed")


def test_a_command_that_is_ignored_or_not_understood_leaves_a_job_its_time():
    known, unknown = container(**shell("sleep 1")), container(**shell("sleep 1; ./server"))
    ignored = Life(pod(known, restartPolicy="Never", ownerReferences=JOB), understands_commands=False)
    served = Life(pod(unknown, restartPolicy="Never", ownerReferences=JOB))
    assert [life.after(9).state() for life in (ignored, served)] == ["running", "running"]
    assert [life.after(1).state() for life in (ignored, served)] == ["ended 0", "ended 0"]


def test_annotations_come_before_the_command_each_for_its_own_part():
    annotated = {"fake-kubelet.dev/exit-code": "0"}
    the_pod = pod(container(**shell("sleep 5; exit 3")), restartPolicy="Never", annotations=annotated)
    assert Life(the_pod).after(5).state() == "ended 0"
    the_pod = pod(container(**shell("sleep 5; exit 3")), restartPolicy="Never", annotations=run_for("7s"))
    assert (Life(the_pod).after(6).state(), Life(the_pod).after(7).state()) == ("running", "ended 3")


def test_an_init_container_takes_as_long_as_its_command_and_may_fail():
    life = Life(pod(initContainers=[container("first", **shell("sleep 5"))]))
    assert (life.after(4).state("first"), life.state()) == ("running", "PodInitializing")
    assert (life.after(1).state("first"), life.state()) == ("ended 0", "running")
    failed = Life(pod(initContainers=[container("first", command=["false"])], restartPolicy="Never"))
    assert (failed.status["phase"], failed.state("first")) == ("Failed", "ended 1")


def test_the_commands_of_a_pod_that_has_very_many_of_them_are_not_read():
    def ends(count):
        long = container("main", **shell("exit 3;" + "echo hi;" * 1000))
        others = [container(f"c{number}", **shell("echo hi;" * 1000)) for number in range(count)]
        return Life(pod(long, *others, restartPolicy="Never")).state()

    assert [ends(7), ends(8)] == ["ended 3", "running"]


def test_a_command_that_fails_is_restarted_with_back_off():
    life = Life(pod(container(command=["false"])))
    assert (life.state(), life.restarts()) == ("CrashLoopBackOff", 1)


def test_a_command_sees_the_addresses_that_its_pod_gets_with_its_start():
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    life = Life(pod(container(**shell("echo $IP; exit 2"), env=env), restartPolicy="Never"))
    assert life.state() == "ended 2"


@pytest.mark.parametrize(
    ("image", "state"),
    [("busybox", "ended 3"), ("registry.k8s.io/e2e-test-images/busybox:1.37.0-1", "ended 3"), ("nginx:1", "running")],
)
def test_the_arguments_of_an_image_without_entrypoint_are_its_command(image, state):
    the_pod = pod(container(args=["sh", "-c", "exit 3"]) | {"image": image}, restartPolicy="Never")
    assert Life(the_pod).state() == state


def test_a_deleted_pod_ends_at_once():
    life = Life(pod()).delete()
    assert (life.status["phase"], life.state()) == ("Succeeded", "ended 0")
    assert life.status["observedGeneration"] == 2
    assert life.told()[-1] == "Killing main"


@pytest.mark.parametrize(
    ("wanted", "grace", "ends", "code"), [("5s", 30, 5, 0), ("1h", 30, 30, 137), ("5s", 0, 1, 137)]
)
def test_a_deleted_pod_takes_its_time_within_its_grace_period(wanted, grace, ends, code):
    life = Life(pod(annotations={"fake-kubelet.dev/stop-after": wanted})).delete(grace)
    assert life.state() == "running"
    assert life.told()[-1] == "Killing main"
    life.after(ends)
    assert life.state() == f"ended {code}"
    assert life.told().count("Killing main") == 1


def test_a_shorter_deletion_shortens_the_wait():
    life = Life(pod(annotations={"fake-kubelet.dev/stop-after": "1h"})).delete(30).after(5).delete(2).after(2)
    assert life.state() == "ended 137"


def test_a_deleted_pod_that_never_ran_is_lost():
    life = Life.__new__(Life)
    life.__dict__ |= Life(pod()).__dict__ | {"pod": pod(), "events": []}
    life.delete()
    assert (life.status["phase"], life.state()) == ("Failed", "ended 137")
    assert life.status["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_container_that_was_held_back_ends_as_it_did_last():
    life = Life(pod(annotations=run_for("0s") | {"fake-kubelet.dev/exit-code": "4"})).delete()
    assert (life.status["phase"], life.state()) == ("Failed", "ended 4")


def test_nothing_starts_in_a_pod_that_is_ending():
    words = {"fake-kubelet.dev/stop-after": "20s"} | run_for("1h", "one")
    life = Life(pod(initContainers=[container("one")], annotations=words)).delete().after(10)
    assert (life.state("one"), life.state()) == ("running", "PodInitializing")


def test_a_deadline_ends_a_pod():
    life = Life(pod(activeDeadlineSeconds=60)).after(59)
    assert life.status["phase"] == "Running"
    life.after(1)
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "DeadlineExceeded")
    assert life.condition("Ready")["reason"] == "PodFailed"


def test_an_ordered_end_is_told_with_its_reason():
    life = Life(pod())
    life.order = KillRequest("Evicted", "The node was low on resource: memory. ", 1.0, life.now)
    life.look()
    assert (life.status["phase"], life.status["reason"]) == ("Failed", "Evicted")
    assert life.status["conditions"][0] | {"lastTransitionTime": ""} == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": "The node was low on resource: memory. ",
        "lastTransitionTime": "",
        "observedGeneration": 1,
    }


def test_nothing_follows_a_terminal_phase():
    life = Life(pod(status={"phase": "Failed", "reason": "OutOfcpu"}))
    assert (life.status, life.next_at) == ({"phase": "Failed", "reason": "OutOfcpu"}, None)


def test_a_pod_goes_on_where_it_was_after_a_long_absence():
    life = Life(pod(restartPolicy="Never", annotations=run_for("30s")))
    life.now += timedelta(hours=2)
    life.look()
    terminated = life.status["containerStatuses"][0]["state"]["terminated"]
    assert terminated["finishedAt"] == (NOW + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_conditions_of_others_are_kept_and_our_own_are_set_right():
    life = Life(pod())
    life.pod["status"]["conditions"].append({"type": "example.com/x", "status": "False"})
    life.condition("Ready")["status"] = "False"  # as the node controller does when it gives a node up
    life.look()
    assert life.condition("example.com/x")["status"] == "False"
    assert life.condition("Ready")["status"] == "True"


def test_a_resize_is_granted():
    life = Life(pod(container(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})))
    life.pod["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    life.look()
    told = life.status["containerStatuses"][0]
    assert (told["resources"], told.get("allocatedResources")) == ({"limits": {"cpu": "2"}}, None)
    assert life.status["resources"] == {"limits": {"cpu": "2"}}
    assert life.restarts() == 0


def test_a_readiness_gate_is_a_condition_that_others_set():
    life = Life(pod(readinessGates=[{"conditionType": "example.com/x"}]))
    assert life.condition("Ready")["reason"] == "ReadinessGatesNotReady"
    life.pod["status"]["conditions"].append({"type": "example.com/x", "status": "True"})
    life.look()
    assert life.condition("Ready")["status"] == "True"


@pytest.mark.parametrize("words", ["soon", "-5s", "5"])
def test_words_that_make_no_sense_count_as_not_said(words):
    life = Life(pod(restartPolicy="Never", annotations={"fake-kubelet.dev/stop-after": words}))
    assert life.delete().status["phase"] == "Succeeded"


def debugged(**options):
    life = Life(pod(**options))
    life.pod["spec"]["ephemeralContainers"] = [container("debugger", targetContainerName="main")]
    life.look()
    return life


def test_a_debugger_runs_beside_the_others_and_is_never_ready():
    life = debugged()
    assert (life.state("debugger"), life.status["phase"], life.condition("Ready")["status"]) == (
        "running",
        "Running",
        "True",
    )
    assert life.told()[-3:] == ["Pulled debugger", "Created debugger", "Started debugger"]
    (status,) = life.status["ephemeralContainerStatuses"]
    assert status["ready"] is False


def test_a_debugger_that_ends_is_not_run_again():
    life = debugged(annotations=run_for("5s", "debugger")).after(60)
    assert (life.state("debugger"), life.restarts("debugger"), life.status["phase"]) == ("ended 0", 0, "Running")


def test_a_debugger_does_not_outlive_its_pod():
    life = debugged(annotations=run_for("5s"), restartPolicy="Never").after(5)
    assert (life.status["phase"], life.state("debugger")) == ("Succeeded", "ended 0")
    assert life.told()[-1] == "Killing debugger"


def test_a_sidecar_ends_with_a_pod_whose_init_container_failed():
    words = run_for("5s", "one") | {"exit-code.fake-kubelet.dev/one": "1"}
    life = Life(pod(initContainers=[SIDE, container("one")], annotations=words, restartPolicy="Never")).after(5)
    assert (life.status["phase"], life.state("side"), life.state("one")) == ("Failed", "ended 0", "ended 1")
    assert life.told()[-1] == "Killing side"
