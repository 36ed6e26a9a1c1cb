"""/metrics of ours beside those of a real kubelet."""

import os
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.api import Identity
from tests.cluster.waiting import eventually


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def labels(family):
    return {frozenset(sample.labels) - {"le"} for sample in family.samples}


def read(node, path="/metrics"):
    page = node.read(path)
    assert page.status == 200
    return families(page.text)


def test_metrics_of_the_same_name_are_the_same_as_a_kubelets(watch_node, control_plane, start_kubelet, node_name):
    kubelet = start_kubelet(f"{node_name}-k", config={"rotateCertificates": True})
    node = watch_node("--rotate-certificates")
    admin = Identity("admin", (control_plane.admin_cert, control_plane.admin_key))

    def kubelets(path):
        return families(admin.ask(kubelet.port, "GET", path).body.decode())

    eventually(lambda: {"kubelet_certificate_manager_client_ttl_seconds", "rest_client_requests"} <= set(read(node)))
    eventually(lambda: "kubelet_node_startup_duration_seconds" in kubelets("/metrics"))
    for asked in (node.read, lambda path: admin.ask(kubelet.port, "GET", path)):
        asked("/healthz")
        asked("/metrics")  # so that requests to ourselves are counted, too
    for path, least in (("/metrics", 20), ("/metrics/slis", 3), ("/metrics/probes", 1)):
        # Both tell of some things only once they have happened.
        theirs, ours = eventually(
            lambda path=path: (kubelets(path), read(node, path)), lambda both: all(alike(*both).values())
        )
        assert len(alike(theirs, ours)) >= least
    gates = "kubernetes_feature_enabled"
    assert _values(read(node)[gates]) == _values(kubelets("/metrics")[gates])


def alike(theirs, ours):
    """Whether each of our metrics, by its name, is as the kubelet's."""
    return {
        name: name in theirs and shape(family) == shape(theirs[name])
        for name, family in ours.items()
        if not name.startswith("fake_kubelet_")
    }


def shape(family):
    return family.type, labels(family), family.documentation


def _values(family):
    return {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}


def test_a_sensor_that_hangs_is_seen_and_costs_no_heartbeat(watch_node, tmp_path):
    root = tmp_path / "host"
    (root / "proc").mkdir(parents=True)
    (root / "proc/meminfo").symlink_to("/proc/meminfo")
    (root / "sys").symlink_to("/sys")
    os.mkfifo(root / "proc/loadavg")  # opening it blocks, as reading a dead disk does
    node = watch_node(f"--host-root={root}")

    def value(name, **wanted):
        family = read(node).get(name)  # what has no number yet is not told
        found = [sample for sample in family.samples if wanted.items() <= sample.labels.items()] if family else []
        return found[0].value if found else None

    eventually(lambda: value("fake_kubelet_sensor_hanging", sensor="pids") == 1)
    eventually(lambda: value("fake_kubelet_sensor_errors", sensor="pids", reason="timeout") == 1)
    assert value("fake_kubelet_sensor_errors", sensor="hugepages") is None
    beats = eventually(lambda: value("fake_kubelet_loop_duration_seconds", loop="lease", le="+Inf"))
    eventually(lambda: value("fake_kubelet_loop_duration_seconds", loop="lease", le="+Inf") >= beats + 3)
    eventually(lambda: node.health() == (200, "ok"))
    Path(root / "proc/loadavg").write_text("0.1 0.1 0.1 1/300 7\n")  # the reader gets its data
    eventually(lambda: value("fake_kubelet_sensor_hanging", sensor="pids") == 0)
