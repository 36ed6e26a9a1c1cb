"""config/rbac grants what a node does, and nothing that it does not do."""

import json

import pytest
import yaml

from tests.cluster.api import CSINODES, NODES, PODS
from tests.cluster.identities import accounts
from tests.cluster.machine import Machine
from tests.cluster.node_view import condition
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually
from tests.join.account import FLEET_RBAC, OPTIONAL_ROLES, RBAC, USER, bound, pod_token, unbound_token

DOCUMENTS = [document for file in (RBAC, FLEET_RBAC) for document in yaml.safe_load_all(file.read_text())]
NODE, (DEREGISTER, STATIC_PODS, DELEGATOR) = "fake-kubelet", OPTIONAL_ROLES
FLEET = "fake-kubelet-fleet"
OF_COMMANDS = {("coordination.k8s.io", "leases", "kube-node-lease", "list")}  # fleet status and fleet delete


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
def machine(rbac, node_name, tmp_path):
    """A pod of the account, as far as the API server can see; the node has its name."""
    made = Machine(rbac, node_name, tmp_path)
    with pod_token(rbac, node_name) as token:
        give_token(made, token)
        yield made
        made.stop()


@pytest.fixture
def fleet_machine(rbac, node_name, tmp_path):
    """A machine with the account of a fleet, which speaks for no pod."""
    rbac.kubectl("apply", "-f", str(FLEET_RBAC))
    made = Machine(rbac, node_name, tmp_path)
    give_token(made, unbound_token(rbac, FLEET))
    yield made
    made.stop()


def give_token(machine, token):
    """A kubeconfig with this token."""
    (machine.folder / "token").write_text(token)
    config = yaml.safe_load(machine.plane.bootstrap_kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": "token"}
    machine.kubeconfig.write_text(yaml.safe_dump(config))


def repeat_an_event(machine):
    """The same event twice is counted in one object."""
    for is_cordoned, reason, count in (
        (True, "NodeNotSchedulable", 1),
        (False, "NodeSchedulable", 1),
        (True, "NodeNotSchedulable", 2),
    ):
        machine.api.patch(f"{NODES}/{machine.name}", {"spec": {"unschedulable": is_cordoned}})
        eventually(
            lambda reason=reason, count=count: [told["count"] for told in machine.events(reason=reason)] == [count]
        )


def bind_and_delete_a_pod(machine):
    """A pod that comes to the node, and is gone again."""
    spec = {"nodeName": machine.name, "containers": [{"name": "main", "image": "pause"}]}
    machine.api.create(PODS, {"metadata": {"name": machine.name}, "spec": spec})
    path = f"{PODS}/{machine.name}"
    eventually(lambda: condition(machine.api.get(path), "Ready")["status"] == "True")
    machine.api.delete(path)
    eventually(lambda: machine.api.ask("GET", path).status == 404)


def ask_for_a_static_pod(machine):
    """A pod that a file asks for; it may not have a service account."""
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "pause"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "static"}, "spec": spec}
    path = machine.folder / "static.yaml"
    path.write_text(json.dumps(pod))
    return f"--pod-manifest-path={path}"


def leave_a_csinode(machine):
    """What an earlier Node of this name has left behind."""
    machine.api.create(CSINODES, {"metadata": {"name": machine.name}, "spec": {"drivers": []}})


def test_every_rule_is_needed_and_none_is_missing(machine):
    leave_a_csinode(machine)
    with bound(machine.plane, STATIC_PODS, STATIC_PODS, namespace="default", verb="create", resource="pods"):
        machine.start_by_kubeconfig("--node-status-update-frequency=1s", ask_for_a_static_pod(machine))
        machine.wait_until_ready()
        wanted = granted(NODE) | granted(STATIC_PODS)
        repeat_an_event(machine)
        bind_and_delete_a_pod(machine)
        eventually(lambda: wanted <= used(machine), every=0.5)
        assert used(machine) == wanted
        assert machine.refusals() == []
        assert machine.users() == {USER}
        machine.stop()


def test_the_account_of_a_fleet_may_do_what_its_nodes_do_and_delete_them(fleet_machine):
    leave_a_csinode(fleet_machine)
    process = fleet_machine.start_by_kubeconfig(
        "--node-status-update-frequency=1s", "--deregister", "--node-labels=fake-kubelet.dev/fleet=lab"
    )
    fleet_machine.wait_until_ready()
    repeat_an_event(fleet_machine)
    bind_and_delete_a_pod(fleet_machine)
    wanted = granted(FLEET) - OF_COMMANDS
    lived = {right for right in wanted if right[-1] != "delete"}
    eventually(lambda: lived <= used(fleet_machine), every=0.5)
    assert process.stop() == 0
    eventually(lambda: wanted <= used(fleet_machine), every=0.5)
    assert used(fleet_machine) == wanted
    assert fleet_machine.refusals() == []
    assert fleet_machine.users() == {f"system:serviceaccount:fake-kubelet:{FLEET}"}


def test_the_right_to_delete_is_needed_for_deregister_alone(machine):
    with bound(machine.plane, DEREGISTER, DEREGISTER, verb="delete", resource="nodes"):
        process = machine.start_by_kubeconfig("--deregister")
        machine.wait_until_ready()
        machine.owned_lease()
        assert process.stop() == 0
    wanted = granted(DEREGISTER)
    eventually(lambda: deletions(machine) >= wanted)
    assert deletions(machine) == wanted
    assert machine.refusals() == []


def deletions(machine):
    return {(group, resource, "", verb) for group, resource, _, verb in used(machine) if verb == "delete"}


def test_the_right_to_ask_about_callers_is_needed_where_they_are_reviewed(machine):
    """With --config, where tokens and rights are reviewed unless it says otherwise."""
    config, port = machine.folder / "config.yaml", free_ports(1)[0]
    config.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n")
    scraper = next(who for who in accounts(machine.plane) if who.name == "account metrics")
    machine.start_by_kubeconfig(f"--config={config}", f"--port={port}")
    machine.wait_until_ready()

    def scraped():
        return scraper.ask(port, "GET", "/metrics").status

    def asked():
        return {right for right in used(machine) if right[1].endswith("reviews")}

    eventually(lambda: scraped() == 401)
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    eventually(lambda: {path.partition("?")[0] for _, path in machine.refusals()} == {reviews})
    role, right = "system:auth-delegator", {"group": "authentication.k8s.io", "resource": "tokenreviews"}
    with bound(machine.plane, DELEGATOR, role, verb="create", **right):
        eventually(lambda: scraped() == 200)
    wanted = rights([machine.plane.get("clusterrole", role)])
    eventually(lambda: asked() >= wanted)
    assert asked() == wanted
