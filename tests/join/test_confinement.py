"""The service account of config/rbac in the hands of an attacker: whatever he writes is about his own node.

Each attack is made twice: with the roles that config/rbac gives, and with those of an administrator, where the
ValidatingAdmissionPolicy alone holds him.
"""

import base64
import json

import pytest

from tests.cluster.waiting import eventually
from tests.join.account import NAMESPACE, USER, bound, pod_token, refused_by, unbound_token
from tests.join.attacks import (
    ABOUT_OTHER,
    ABOUT_OWN,
    ATTACKS,
    BY_RBAC_ALONE,
    CLAIM,
    CSINODES,
    EVENTS,
    INVALID,
    LEASES,
    MINE,
    MIRROR,
    MIRRORS,
    NEW,
    NODES,
    ODD_MIRRORS,
    OTHER,
    OWN,
    PENDING,
    PODS,
    REDIRECT,
    ROOT_OF_HOST,
    THEIRS,
    TOKEN_SECRET,
    UID,
    UNBORN,
    VERSION,
    WORKLOAD,
    csinode,
    event,
    labelled,
    lease,
    metadata,
    mirror,
    pod,
    signing_request,
)

VICTIM = {"labels": {"confined": "victim"}}
KEPT = {
    "labels": {"node-role.kubernetes.io/kept": ""},
    "annotations": {"confined": "kept"},
    "finalizers": ["example.com/f"],
}


class World:
    """The cluster around the attacker: his node, a victim, and what is theirs."""

    def __init__(self, plane, tokens):
        self.plane, self.admin, self.uid, self.version = plane, plane.kubectl, "", ""
        self.tokens = tokens

    def fill(self):
        """Make what the attacks are about: his own things as himself, the others as the administrator."""
        assert self.ask("POST", NODES, metadata(OWN)).status == 201
        self.uid = self.plane.get("node", OWN)["metadata"]["uid"]
        self.admin("patch", "node", OWN, "--patch", json.dumps({"metadata": KEPT}))
        never = {"schedulingGates": [{"name": "example.com/never"}]}
        victims = [
            ("v1", "Node", metadata(OTHER, **VICTIM)),
            ("storage.k8s.io/v1", "CSINode", csinode(OTHER, **VICTIM)),
            ("coordination.k8s.io/v1", "Lease", lease(OTHER, namespace="kube-node-lease", **VICTIM)),
            ("v1", "Pod", pod(THEIRS, OTHER, **VICTIM)),
            ("v1", "Pod", pod(MINE, OWN, spec=CLAIM, finalizers=["example.com/f"])),
            ("v1", "Pod", pod(PENDING, "", spec=never, **VICTIM)),
            ("v1", "Event", event(ABOUT_OTHER, OTHER, THEIRS)),
            ("certificates.k8s.io/v1", "CertificateSigningRequest", signing_request("confined", USER, "x")),
            ("apps/v1", "StatefulSet", metadata("fake-kubelet", namespace=NAMESPACE) | WORKLOAD),
        ]
        items = [{"apiVersion": version, "kind": kind, **made} for version, kind, made in victims]
        self.admin("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        self.version = self.plane.get("lease", OTHER, "kube-node-lease")["metadata"]["resourceVersion"]
        assert self.ask("POST", EVENTS, event(ABOUT_OWN, OWN, MINE)).status == 201

    def empty(self):
        """Take everything away again."""
        gone = ("--ignore-not-found", "--wait=false")
        for kind, name in (("node", OWN), ("pod", MINE)):
            self.admin("patch", kind, name, "--type=merge", "--patch", '{"metadata":{"finalizers":null}}', check=False)
        self.admin("delete", "pod", MINE, THEIRS, MIRROR, PENDING, "p", "--force", *gone)
        self.admin("delete", "event", MINE, THEIRS, *gone)
        self.admin("delete", "node,csinode", OWN, UNBORN, OTHER, NEW, *gone)
        self.admin("delete", "lease", "--namespace=kube-node-lease", OWN, OTHER, NEW, *gone)
        self.admin("delete", "csr", "confined", *gone)
        self.admin("delete", "statefulset,secret", f"--namespace={NAMESPACE}", "fake-kubelet", "t", *gone)

    def assert_unharmed(self):
        """Nothing of the victim has changed, and nothing is there that the attacker wanted to make."""
        assert "addresses" not in self.plane.get("node", OTHER)["status"]
        assert self.plane.get("pod", THEIRS)["status"]["phase"] == "Pending"
        for path in (f"{NODES}/{NEW}", f"{CSINODES}/{NEW}", f"{LEASES}/{NEW}"):
            assert self.plane.api.ask("GET", path).status == 404, path

    def ask(self, method, path, body=None, *, as_node=OWN, **options):
        """Ask as the account, from the pod of a node."""
        text = json.dumps(body).replace(f'"{UID}"', f'"{self.uid}"').replace(f'"{VERSION}"', f'"{self.version}"')
        return self.plane.api.as_bearer(self.tokens[as_node]).ask(method, path, json.loads(text), **options)

    def make(self, attack):
        where = {"as_node": attack.as_node, "content_type": attack.content_type}
        return self.ask(attack.method, attack.path, attack.body, **where)


@pytest.fixture(scope="module")
def account(rbac):
    with pod_token(rbac, OWN) as own, pod_token(rbac, UNBORN) as unborn:
        world = World(rbac, {OWN: own, UNBORN: unborn})
        try:
            world.fill()
            yield world
            world.assert_unharmed()  # after all attacks, whatever their order
        finally:
            world.empty()


@pytest.fixture
def administrator(account):
    """The same account as a careless person would bind it."""
    with bound(account.plane, "confined-cluster-admin", "cluster-admin", verb="get", resource="secrets"):
        yield account


@pytest.fixture
def static_pods(account):
    """The same account with the right to create pods in the default namespace, as rbac.yaml says."""
    role = "fake-kubelet-static-pods"
    with bound(account.plane, role, role, namespace="default", verb="create", resource="pods"):
        yield account


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_is_refused(account, attack):
    answer = account.make(attack)
    assert (refused_by(answer), answer.status) == (attack.by, 403), answer


@pytest.mark.parametrize(("method", "path"), BY_RBAC_ALONE)
def test_it_is_not_granted(account, method, path):
    answer = account.ask(method, path)
    assert (refused_by(answer), answer.status) == ("RBAC", 403), answer


@pytest.mark.parametrize("user", ["system:admin", f"system:node:{OTHER}", "system:kube-controller-manager"])
def test_the_account_becomes_nobody_else(account, user):
    answer = account.ask("GET", NODES, headers={"Impersonate-User": user})
    assert (refused_by(answer), answer.status) == ("RBAC", 403), answer


def test_the_policy_alone_holds_an_administrator(administrator):
    """A role that somebody binds in error changes nothing."""
    answers = {attack.name: administrator.make(attack) for attack in ATTACKS}
    others = {name: answer for name, answer in answers.items() if refused_by(answer) != "policy"}
    assert {name: answer for name, answer in others.items() if (name in INVALID, answer.status) != (True, 422)} == {}
    administrator.assert_unharmed()


def test_static_pods_are_shown_as_mirror_pods_alone(static_pods):
    """With the role for static pods, which is not bound by default."""
    answers = {name: static_pods.ask("POST", PODS, made) for name, made in MIRRORS.items()}
    assert {name: answer for name, answer in answers.items() if refused_by(answer) != "policy"} == {}
    refused = {name: static_pods.ask("POST", PODS, made).status for name, made in ODD_MIRRORS.items()}
    assert set(refused.values()) <= {403, 422}, refused
    for namespace in ("kube-system", NAMESPACE):
        assert refused_by(static_pods.ask("POST", f"/api/v1/namespaces/{namespace}/pods", mirror())) == "RBAC"
    assert static_pods.ask("POST", PODS, mirror(volumes=[ROOT_OF_HOST])).status == 201
    assert static_pods.ask("DELETE", f"{PODS}/{MIRROR}?gracePeriodSeconds=0").status == 200


def test_his_own_node_is_his(account):
    own_labels = {"kubernetes.io/hostname": OWN, "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "a"}
    free_labels = {"team": "mine", "node.kubernetes.io/a": "b", "x.kubelet.kubernetes.io/a": "b"}
    owned = {"ownerReferences": [ABOUT_OWN | {"uid": UID}]}
    for method, path, body in (
        ("PATCH", f"{NODES}/{OWN}/status", REDIRECT),
        ("PATCH", f"{NODES}/{OWN}/status", {"metadata": {"labels": own_labels | free_labels}}),
        ("PATCH", f"{NODES}/{OWN}/status", labelled("team", None)),
        ("POST", LEASES, lease(OWN, **owned)),
        ("POST", CSINODES, csinode(OWN, **owned)),
        ("DELETE", f"{CSINODES}/{OWN}", None),
        ("PATCH", f"{PODS}/{MINE}/status", {"status": {"phase": "Running"}}),
        ("PATCH", f"{EVENTS}/{MINE}", {"count": 2}),
    ):
        answer = account.ask(method, path, body)
        assert answer.status in {200, 201}, (method, path, answer)


@pytest.mark.parametrize("kind", ["of no pod", "from a Secret"])
def test_a_token_without_a_pod_writes_nothing(account, kind):
    token = unbound_token(account.plane) if kind == "of no pod" else token_of_a_secret(account)
    about_pod = {"kind": "Pod", "name": MINE, "namespace": "default"}
    answers = [
        account.plane.api.as_bearer(token).ask(method, path, body)
        for method, path, body in (
            ("POST", NODES, metadata(NEW)),
            ("PATCH", f"{NODES}/{OWN}/status", REDIRECT),
            ("POST", LEASES, lease(NEW)),
            ("POST", CSINODES, csinode(NEW)),
            ("DELETE", f"{PODS}/{MINE}", None),
            ("DELETE", f"{PODS}/{PENDING}", None),
            ("PATCH", f"{PODS}/{PENDING}/status", {"status": {"phase": "Failed"}}),
            ("POST", EVENTS, event(ABOUT_OWN, OWN, "confined-e9")),
            ("POST", EVENTS, event(about_pod, "", "confined-e9")),
        )
    ]
    assert {refused_by(answer) for answer in answers} == {"policy"}, answers


def token_of_a_secret(account):
    """A token of the old kind, which never expires."""
    secret = {"apiVersion": "v1", "kind": "Secret", **TOKEN_SECRET}
    account.admin("create", "-f", "-", f"--namespace={NAMESPACE}", input=json.dumps(secret))
    read = eventually(lambda: account.plane.get("secret", "t", NAMESPACE).get("data", {}).get("token"))
    return base64.b64decode(read).decode()


def test_a_token_ends_with_its_pod(account):
    with pod_token(account.plane, "confined-short") as token:
        asking = account.plane.api.as_bearer(token)
        assert asking.ask("GET", NODES).status == 200
    eventually(lambda: asking.ask("GET", NODES).status == 401)
