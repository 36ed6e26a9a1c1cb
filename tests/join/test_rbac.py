"""config/rbac grants what a node does, and nothing that it does not do."""

import json
import time

import pytest
import yaml

from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually
from tests.join.account import OPTIONAL_ROLES, RBAC, USER, applied, pod_token
from tests.join.machine import Machine
from tests.server.identities import accounts

DOCUMENTS = list(yaml.safe_load_all(RBAC.read_text()))
NODE, (DEREGISTER, STATIC_PODS, DELEGATOR) = "fake-kubelet", OPTIONAL_ROLES


def granted(role):
    """Each right of a role as (API group, resource, namespace, verb)."""
    roles = [document for document in DOCUMENTS if document["kind"] in {"ClusterRole", "Role"}]
    return rights(document for document in roles if document["metadata"]["name"] == role)


def rights(roles):
    return {
        (group, resource, role["metadata"].get("namespace", ""), verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(machine):
    """The same, from the audit log."""
    found = set()
    for request in machine.requests():
        about = request["objectRef"]
        resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        namespace = about.get("namespace", "") if resource == "leases" else ""  # the others are granted everywhere
        found.add((about.get("apiGroup", ""), resource, namespace, request["verb"]))
    return found


@pytest.fixture
def machine(control_plane, node_name, tmp_path):
    """A pod of the account, as far as the API server can see; the node has its name."""
    with applied(control_plane):
        made = Machine(control_plane, node_name, tmp_path)
        token = made.folder / "token"
        token.write_text(pod_token(control_plane, node_name))
        config = yaml.safe_load(control_plane.bootstrap_kubeconfig.read_text())
        config["users"][0]["user"] = {"tokenFile": "token"}
        made.kubeconfig.write_text(yaml.safe_dump(config))
        yield made
        for process in made.processes:
            process.stop()
        control_plane.kubectl("delete", "pod", node_name, "--namespace=fake-kubelet", "--force")
        control_plane.kubectl("delete", "node", node_name, "--ignore-not-found", "--wait=false")


def bind(machine, name, role):
    """As rbac.yaml says."""
    account = "--serviceaccount=fake-kubelet:fake-kubelet"
    machine.plane.kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", account)


def allow_static_pods(machine):
    """As rbac.yaml says."""
    account = "--serviceaccount=fake-kubelet:fake-kubelet"
    words = ("create", "rolebinding", STATIC_PODS, "--namespace=default", f"--clusterrole={STATIC_PODS}")
    machine.plane.kubectl(*words, account)


def repeat_an_event(machine):
    """The same event twice is counted in one object."""
    told = machine.plane.kubectl
    selector = f"involvedObject.name={machine.name},reason=NodeNotSchedulable"
    for word in ("cordon", "uncordon", "cordon"):
        told(word, machine.name)
        eventually(lambda: "NodeNotSchedulable" in told("get", "events", "--field-selector", selector), within=15)
        time.sleep(1.5)  # longer than a status update: both states are to be seen


def bind_and_delete_a_pod(machine):
    """A pod that comes to the node, and is gone again."""
    spec = {"nodeName": machine.name, "containers": [{"name": "main", "image": "pause"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": machine.name}, "spec": spec}
    machine.plane.kubectl("create", "-f", "-", input=json.dumps(pod))
    machine.plane.kubectl("wait", "--for=condition=Ready", f"pod/{machine.name}", "--timeout=20s")
    machine.plane.kubectl("delete", "pod", machine.name, "--timeout=20s")


def ask_for_a_static_pod(machine):
    """A pod that a file asks for; it may not have a service account."""
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "pause"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static"}, "spec": spec}
    path = machine.folder / "static.yaml"
    path.write_text(json.dumps(pod))
    return f"--pod-manifest-path={path}"


def leave_a_csinode(machine):
    """What an earlier Node of this name has left behind."""
    left = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": machine.name}}
    machine.plane.kubectl("create", "-f", "-", input=json.dumps(left | {"spec": {"drivers": []}}))


def test_every_rule_is_needed_and_none_is_missing(machine):
    leave_a_csinode(machine)
    allow_static_pods(machine)
    machine.start_by_kubeconfig("--node-status-update-frequency=1s", ask_for_a_static_pod(machine))
    machine.wait_until_ready()
    wanted = granted(NODE) | granted(STATIC_PODS)
    repeat_an_event(machine)
    bind_and_delete_a_pod(machine)
    eventually(lambda: wanted <= used(machine), within=25, every=0.5)
    assert used(machine) == wanted
    assert machine.refusals() == []
    assert machine.users() == {USER}


def test_the_right_to_delete_is_needed_for_deregister_alone(machine):
    bind(machine, DEREGISTER, DEREGISTER)
    process = machine.start_by_kubeconfig("--deregister")
    machine.wait_until_ready()
    eventually(lambda: machine.plane.get("lease", machine.name, "kube-node-lease"), within=15)
    assert process.stop() == 0
    deletions = {(group, resource, "", verb) for group, resource, _, verb in used(machine) if verb == "delete"}
    assert deletions == granted(DEREGISTER)
    assert machine.refusals() == []


def test_the_right_to_ask_about_callers_is_needed_where_they_are_reviewed(machine):
    """With --config, where tokens and rights are reviewed unless it says otherwise."""
    config, port = machine.folder / "config.yaml", free_ports(1)[0]
    config.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    scraper = next(who for who in accounts(machine.plane) if who.name == "account metrics")
    machine.start_by_kubeconfig(f"--config={config}", f"--port={port}")
    machine.wait_until_ready()

    def scraped():
        return scraper.ask(port, "GET", "/metrics").status

    eventually(lambda: scraped() == 401, within=20)
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert {path.partition("?")[0] for _, path in machine.refusals()} == {reviews}
    bind(machine, DELEGATOR, "system:auth-delegator")
    eventually(lambda: scraped() == 200, within=20)
    asked = {right for right in used(machine) if right[1].endswith("reviews")}
    assert asked == rights([machine.plane.get("clusterrole", "system:auth-delegator")])
