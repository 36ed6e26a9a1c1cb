"""The service account of config/rbac in the hands of an attacker: whatever he writes, it is about his own node.

Each attack is made twice: with the roles that config/rbac gives, and with those of an administrator, where the
ValidatingAdmissionPolicy alone holds him.
"""

import base64
import json
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.cluster.waiting import eventually
from tests.join.account import NAMESPACE, USER, Answer, applied, ask, pod_token, unbound_token

pytestmark = pytest.mark.timeout(600)

OWN, UNBORN, OTHER = "confined-0", "confined-1", "confined-victim"
MINE, MIRROR, THEIRS = "confined-mine", f"static-{OWN}", "confined-theirs"
NODES, CSINODES = "/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SYSTEM_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PODS, EVENTS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
RBAC_API = "/apis/rbac.authorization.k8s.io/v1"
APPLY = "application/apply-patch+yaml"
LABELLED = "labelSelector=confined%3Dvictim"
CONTAINERS = [{"name": "main", "image": "pause"}]
MARKS = {"kubernetes.io/config.mirror": "x"}


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more}}


def relabel(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": {key.replace("__", "/"): value for key, value in labels.items()}}}


def lease(name: str, **more: Any) -> dict[str, Any]:
    return metadata(name, **more) | {"spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}


def event(about: dict[str, Any], host: str, name: str, **more: Any) -> dict[str, Any]:
    source = {"component": "kubelet", "host": host}
    return metadata(name, **more) | {"involvedObject": about, "source": source, "reason": "Lie", "message": "lie"}


def pod(name: str, node: str, *, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return metadata(name, **more) | {"spec": {"nodeName": node, "containers": CONTAINERS, **(spec or {})}}


def mirror(uid: str = "UID", *, node: str = OWN, owner: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A mirror pod as NodeRestriction wants one; UID stands for that of the own Node."""
    owners = [{"apiVersion": "v1", "kind": "Node", "name": OWN, "uid": uid, "controller": True, **(owner or {})}]
    return pod(MIRROR, node, spec=spec, annotations=MARKS, ownerReferences=owners)


ABOUT_OTHER = {"apiVersion": "v1", "kind": "Node", "name": OTHER}
ABOUT_OWN = {"apiVersion": "v1", "kind": "Node", "name": OWN}
BLOCKING = [{"apiVersion": "v1", "kind": "Node", "name": OTHER, "uid": "UID", "blockOwnerDeletion": True}]
INTERNAL_IP = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.66"}]}}
NOT_READY = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
SECRET_VOLUME = {"name": "v", "secret": {"secretName": "s"}}
TOKEN_VOLUME = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
HOST_PATH = {"name": "root", "hostPath": {"path": "/"}}
PRIVILEGED = [{"name": "main", "image": "pause", "securityContext": {"privileged": True}}]
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": THEIRS, "namespace": "default"}}
BINDING = {"metadata": {"name": "confined-pending"}, "target": {"kind": "Node", "name": OWN}}
DEBUGGER = {"spec": {"ephemeralContainers": [{"name": "d", "image": "pause"}]}}
ADMIN = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
SUBJECT = {"subjects": [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}]}

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
WORKLOAD = {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
REPLICAS = metadata("fake-kubelet", namespace=NAMESPACE) | WORKLOAD


class Attack(NamedTuple):
    """One request, and who has to refuse it where the account has the roles of config/rbac."""

    name: str
    by: str
    method: str
    path: str
    body: Any = None
    as_node: str = OWN
    content_type: str = ""


ATTACKS = [
    # Nodes of others
    Attack("create a Node", "policy", "POST", NODES, metadata("confined-new")),
    Attack("create a Node by generateName", "policy", "POST", NODES, {"metadata": {"generateName": OWN}}),
    Attack("redirect a Node", "policy", "PATCH", f"{NODES}/{OTHER}/status", INTERNAL_IP),
    Attack(
        "redirect a Node by merge patch",
        "policy",
        "PATCH",
        f"{NODES}/{OTHER}/status",
        INTERNAL_IP,
        content_type="application/merge-patch+json",
    ),
    Attack(
        "relabel a Node by JSON patch",
        "policy",
        "PATCH",
        f"{NODES}/{OTHER}/status",
        [{"op": "add", "path": "/metadata/labels/a", "value": "b"}],
        content_type="application/json-patch+json",
    ),
    Attack(
        "redirect a Node by apply",
        "policy",
        "PATCH",
        f"{NODES}/{OTHER}/status?fieldManager=x&force=true",
        {"apiVersion": "v1", "kind": "Node", **metadata(OTHER), **INTERNAL_IP},
        content_type=APPLY,
    ),
    Attack("redirect a Node, dry", "policy", "PATCH", f"{NODES}/{OTHER}/status?dryRun=All", INTERNAL_IP),
    Attack("make a Node NotReady", "policy", "PATCH", f"{NODES}/{OTHER}/status", NOT_READY),
    Attack("relabel a Node", "policy", "PATCH", f"{NODES}/{OTHER}/status", relabel(team="mine")),
    Attack("replace a Node's status", "RBAC", "PUT", f"{NODES}/{OTHER}/status", metadata(OTHER) | INTERNAL_IP),
    Attack("replace a Node", "RBAC", "PUT", f"{NODES}/{OTHER}", metadata(OTHER)),
    Attack("taint a Node", "RBAC", "PATCH", f"{NODES}/{OTHER}", {"spec": {"unschedulable": True}}),
    Attack("delete a Node", "RBAC", "DELETE", f"{NODES}/{OTHER}"),
    Attack("delete all Nodes", "RBAC", "DELETE", f"{NODES}?{LABELLED}"),
    Attack("speak to a kubelet", "RBAC", "POST", f"{NODES}/{OTHER}/proxy/run/default/p/c"),
    # what he may not make of his own Node
    Attack(
        "give a node-restriction label",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        relabel(**{"node-restriction.kubernetes.io__pci": "yes"}),
    ),
    Attack(
        "give a label below node-restriction",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        relabel(**{"x.node-restriction.kubernetes.io__pci": "yes"}),
    ),
    Attack(
        "become a control plane",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        relabel(**{"node-role.kubernetes.io__control-plane": ""}),
    ),
    Attack(
        "give a kubernetes.io label",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        relabel(**{"kubernetes.io__anything": "x"}),
    ),
    Attack("give a k8s.io label", "policy", "PATCH", f"{NODES}/{OWN}/status", relabel(**{"x.k8s.io__anything": "x"})),
    Attack(
        "remove a reserved label",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"labels": {"node-role.kubernetes.io/kept": None}}},
    ),
    Attack(
        "draw another's pods by hostname",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        relabel(**{"kubernetes.io__hostname": OTHER}),
    ),
    Attack(
        "annotate for a network",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"annotations": {"flannel.alpha.coreos.com/public-ip": "192.0.2.66"}}},
    ),
    Attack(
        "remove an annotation",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"annotations": {"confined": None}}},
    ),
    Attack(
        "hold his Node by a finalizer",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"finalizers": ["example.com/hold"]}},
    ),
    Attack(
        "remove a finalizer from his Node",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"finalizers": []}},
        content_type="application/merge-patch+json",
    ),
    Attack(
        "have his Node collected",
        "policy",
        "PATCH",
        f"{NODES}/{OWN}/status",
        {"metadata": {"ownerReferences": [ABOUT_OTHER | {"uid": "UID"}]}},
    ),
    Attack("take off his taints", "RBAC", "PATCH", f"{NODES}/{OWN}", {"spec": {"taints": None}}),
    Attack("take a pod range", "RBAC", "PATCH", f"{NODES}/{OWN}", {"spec": {"podCIDR": "10.0.0.0/8"}}),
    Attack("replace his Node", "RBAC", "PUT", f"{NODES}/{OWN}", metadata(OWN)),
    Attack(
        "register with a pod range",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN) | {"spec": {"podCIDR": "10.0.0.0/8", "podCIDRs": ["10.0.0.0/8"]}},
        UNBORN,
    ),
    Attack(
        "register as another machine",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN) | {"spec": {"providerID": f"kind://docker/kind/{OTHER}"}},
        UNBORN,
    ),
    Attack(
        "register as a control plane",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN, labels={"node-role.kubernetes.io/control-plane": ""}),
        UNBORN,
    ),
    Attack(
        "register under a reserved label",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN, labels={"node-restriction.kubernetes.io/pci": ""}),
        UNBORN,
    ),
    Attack(
        "register with another's hostname",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN, labels={"kubernetes.io/hostname": OTHER}),
        UNBORN,
    ),
    Attack(
        "register with an annotation",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN, annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}),
        UNBORN,
    ),
    Attack(
        "register with an owner",
        "policy",
        "POST",
        NODES,
        metadata(UNBORN, ownerReferences=[ABOUT_OTHER | {"uid": "UID"}]),
        UNBORN,
    ),
    Attack(
        "register with a finalizer", "policy", "POST", NODES, metadata(UNBORN, finalizers=["example.com/hold"]), UNBORN
    ),
    Attack(
        "register by apply under another name",
        "RBAC",
        "PATCH",
        f"{NODES}/confined-new?fieldManager=x",
        {"apiVersion": "v1", "kind": "Node", **metadata("confined-new")},
        content_type=APPLY,
    ),
    # Leases
    Attack("renew another's Lease", "policy", "PUT", f"{LEASES}/{OTHER}", lease(OTHER)),
    Attack("create another's Lease", "policy", "POST", LEASES, lease("confined-new")),
    Attack("create another's Lease by replacing it", "policy", "PUT", f"{LEASES}/confined-new", lease("confined-new")),
    Attack("delete another's Lease", "RBAC", "DELETE", f"{LEASES}/{OTHER}"),
    Attack("delete all Leases", "RBAC", "DELETE", f"{LEASES}?{LABELLED}"),
    Attack("patch another's Lease", "RBAC", "PATCH", f"{LEASES}/{OTHER}", {"spec": {"holderIdentity": OWN}}),
    Attack("lead a control plane", "RBAC", "POST", SYSTEM_LEASES, lease(OWN)),
    Attack("hold another Node by his Lease", "policy", "POST", LEASES, lease(OWN, ownerReferences=BLOCKING)),
    Attack("hold his Lease by a finalizer", "policy", "POST", LEASES, lease(OWN, finalizers=["example.com/hold"])),
    # CSINodes
    Attack(
        "create another's CSINode", "policy", "POST", CSINODES, metadata("confined-new") | {"spec": {"drivers": []}}
    ),
    Attack("delete another's CSINode", "policy", "DELETE", f"{CSINODES}/{OTHER}"),
    Attack("delete all CSINodes", "RBAC", "DELETE", f"{CSINODES}?{LABELLED}"),
    Attack("patch a CSINode", "RBAC", "PATCH", f"{CSINODES}/{OTHER}", relabel(a="b")),
    Attack(
        "hold another Node by his CSINode",
        "policy",
        "POST",
        CSINODES,
        metadata(OWN, ownerReferences=BLOCKING) | {"spec": {"drivers": []}},
    ),
    # pods
    Attack(
        "run a privileged pod on a real node",
        "RBAC",
        "POST",
        PODS,
        pod("p", OTHER, spec={"containers": PRIVILEGED, "volumes": [HOST_PATH], "hostPID": True}),
    ),
    Attack("run a mirror pod on a real node", "RBAC", "POST", PODS, mirror(node=OTHER)),
    Attack("run a pod anywhere", "RBAC", "POST", PODS, pod("p", "")),
    Attack("run a pod on his node", "RBAC", "POST", PODS, pod("p", OWN)),
    Attack("delete another's pod", "policy", "DELETE", f"{PODS}/{THEIRS}"),
    Attack("delete another's pod at once", "policy", "DELETE", f"{PODS}/{THEIRS}?gracePeriodSeconds=0"),
    Attack("delete a pod of no node", "policy", "DELETE", f"{PODS}/confined-pending"),
    Attack("delete his own pod", "policy", "DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{OWN}"),
    Attack("delete all pods", "RBAC", "DELETE", f"{PODS}?{LABELLED}"),
    Attack("end another's pod", "policy", "PATCH", f"{PODS}/{THEIRS}/status", {"status": {"phase": "Failed"}}),
    Attack(
        "give another's pod an address",
        "policy",
        "PATCH",
        f"{PODS}/{THEIRS}/status",
        {"status": {"podIP": "192.0.2.66", "podIPs": [{"ip": "192.0.2.66"}]}},
    ),
    Attack(
        "set the status of a pod of no node",
        "policy",
        "PATCH",
        f"{PODS}/confined-pending/status",
        {"status": {"nominatedNodeName": OWN}},
    ),
    Attack("relabel a pod of his node", "policy", "PATCH", f"{PODS}/{MINE}/status", relabel(app="database")),
    Attack(
        "annotate a pod of his node",
        "policy",
        "PATCH",
        f"{PODS}/{MINE}/status",
        {"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
    ),
    Attack(
        "hold a pod of his node",
        "policy",
        "PATCH",
        f"{PODS}/{MINE}/status",
        {"metadata": {"finalizers": ["example.com/hold"]}},
    ),
    Attack(
        "let go of a pod that another holds",
        "policy",
        "PATCH",
        f"{PODS}/{MINE}/status",
        {"metadata": {"finalizers": []}},
        content_type="application/merge-patch+json",
    ),
    Attack(
        "claim a resource for a pod of his node",
        "policy",
        "PATCH",
        f"{PODS}/{MINE}/status",
        {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "theirs"}]}},
    ),
    Attack("replace a pod's status", "RBAC", "PUT", f"{PODS}/{THEIRS}/status", pod(THEIRS, OTHER)),
    Attack("patch a pod", "RBAC", "PATCH", f"{PODS}/{MINE}", relabel(app="database")),
    Attack("evict a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/eviction", EVICTION),
    Attack("bind a pod to himself", "RBAC", "POST", f"{PODS}/confined-pending/binding", BINDING),
    Attack("bind a pod by /bindings", "RBAC", "POST", "/api/v1/namespaces/default/bindings", BINDING),
    Attack("debug a pod", "RBAC", "PATCH", f"{PODS}/{THEIRS}/ephemeralcontainers", DEBUGGER),
    Attack("resize a pod", "RBAC", "PATCH", f"{PODS}/{THEIRS}/resize", {"spec": {"containers": CONTAINERS}}),
    Attack("run a command in a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/exec?command=id&stdout=true"),
    Attack("attach to a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/attach?stdout=true"),
    Attack("reach into a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/portforward"),
    Attack("go through a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/proxy/"),
    # events
    Attack("tell of another Node", "policy", "POST", EVENTS, event(ABOUT_OTHER, OWN, "confined-e1")),
    Attack("tell in another's name", "policy", "POST", EVENTS, event(ABOUT_OTHER, OTHER, "confined-e2")),
    Attack("tell of himself in another's name", "policy", "POST", EVENTS, event(ABOUT_OWN, OTHER, "confined-e3")),
    Attack(
        "tell in nobody's name",
        "policy",
        "POST",
        EVENTS,
        metadata("confined-e4") | {"involvedObject": ABOUT_OWN, "reason": "Lie"},
    ),
    Attack(
        "tell of a Secret",
        "policy",
        "POST",
        EVENTS,
        event({"kind": "Secret", "name": "s", "namespace": "default"}, OWN, "confined-e5"),
    ),
    Attack(
        "hold an event for ever",
        "policy",
        "POST",
        EVENTS,
        event(ABOUT_OWN, OWN, "confined-e6", finalizers=["example.com/hold"]),
    ),
    Attack(
        "hold another Node by an event",
        "policy",
        "POST",
        EVENTS,
        event(ABOUT_OWN, OWN, "confined-e7", ownerReferences=BLOCKING),
    ),
    Attack("rewrite another's event", "policy", "PATCH", f"{EVENTS}/confined-theirs", {"message": "all is well"}),
    Attack("take over another's event", "policy", "PATCH", f"{EVENTS}/confined-theirs", {"source": {"host": OWN}}),
    Attack("give an event to another", "policy", "PATCH", f"{EVENTS}/confined-mine", {"source": {"host": OTHER}}),
    Attack("delete an event", "RBAC", "DELETE", f"{EVENTS}/confined-theirs"),
    Attack(
        "tell by the other API",
        "RBAC",
        "POST",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        metadata("confined-e8")
        | {
            "regarding": ABOUT_OTHER,
            "reason": "Lie",
            "action": "Lie",
            "type": "Normal",
            "reportingController": "kubelet",
            "reportingInstance": OWN,
            "eventTime": "2026-01-02T03:04:05.000000Z",
        },
    ),
    # the way to other identities
    Attack(
        "get a token",
        "RBAC",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/fake-kubelet/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ),
    Attack(
        "get a controller's token",
        "RBAC",
        "POST",
        "/api/v1/namespaces/kube-system/serviceaccounts/node-controller/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ),
    Attack("become another node", "RBAC", "POST", CSRS, "CSR system:node:confined-victim system:nodes"),
    Attack("become an administrator by a certificate", "RBAC", "POST", CSRS, "CSR root system:masters"),
    Attack(
        "approve a certificate",
        "RBAC",
        "PATCH",
        f"{CSRS}/confined/approval",
        {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}},
    ),
    Attack(
        "become an administrator by a binding",
        "RBAC",
        "POST",
        f"{RBAC_API}/clusterrolebindings",
        metadata("confined-admin") | ADMIN | SUBJECT,
    ),
    Attack(
        "widen his role",
        "RBAC",
        "PATCH",
        f"{RBAC_API}/clusterroles/fake-kubelet",
        {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    ),
    Attack(
        "make a Secret of his account",
        "RBAC",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/secrets",
        metadata("t", annotations={"kubernetes.io/service-account.name": "fake-kubelet"})
        | {"type": "kubernetes.io/service-account-token"},
    ),
    Attack(
        "run a Deployment", "RBAC", "POST", "/apis/apps/v1/namespaces/default/deployments", metadata("d") | WORKLOAD
    ),
    Attack(
        "add a pod to his StatefulSet",
        "RBAC",
        "PATCH",
        f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/fake-kubelet/scale",
        {"spec": {"replicas": 9}},
    ),
    Attack("make a ConfigMap", "RBAC", "POST", "/api/v1/namespaces/kube-system/configmaps", metadata("c")),
]
# What admission never sees: reads, impersonation, and writes of the policies themselves.
BY_RBAC_ALONE = [
    ("GET", "/api/v1/secrets"),
    ("GET", "/api/v1/secrets?watch=true"),
    ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets/any"),
    ("GET", "/api/v1/configmaps"),
    ("GET", f"{PODS}/{THEIRS}/log"),
    ("GET", f"{NODES}/{OTHER}/proxy/logs/"),
    ("GET", SYSTEM_LEASES),
    ("DELETE", f"{POLICIES}/validatingadmissionpolicies/fake-kubelet"),
    ("DELETE", f"{POLICIES}/validatingadmissionpolicybindings/fake-kubelet"),
]
# A mirror pod that asks for more than NodeRestriction lets a node have, with the role for static pods.
MIRRORS = {
    "on another node": mirror(node=OTHER),
    "of no node": mirror(node=""),
    "that is none": pod(MIRROR, OWN),
    "without an owner": pod(MIRROR, OWN, annotations=MARKS),
    "of another owner": mirror(owner={"name": OTHER}),
    "of an owner that is no Node": mirror(owner={"apiVersion": "apps/v1", "kind": "ReplicaSet"}),
    "whose owner does not control it": mirror(owner={"controller": False}),
    "that holds its Node": mirror(owner={"blockOwnerDeletion": True}),
    "with a pull secret": mirror(imagePullSecrets=[{"name": "s"}]),
    "with a claim": mirror(resourceClaims=[{"name": "c", "resourceClaimName": "theirs"}]),
    "with a variable from a secret": mirror(
        containers=[{**CONTAINERS[0], "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]
    ),
    "with all variables of a secret": mirror(
        initContainers=[{"name": "i", "image": "pause", "envFrom": [{"secretRef": {"name": "s"}}]}]
    ),
    "with a variable from a config map": mirror(
        containers=[
            {**CONTAINERS[0], "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}]}
        ]
    ),
    "with a token": mirror(volumes=[TOKEN_VOLUME]),
    "with a CSI volume": mirror(volumes=[{"name": "v", "csi": {"driver": "example.com"}}]),
    "with an ephemeral volume": mirror(
        volumes=[
            {
                "name": "v",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                    }
                },
            }
        ]
    ),
}
# The API server's own ServiceAccount admission refuses these before any policy.
OF_ACCOUNTS = {
    "with a service account": mirror(serviceAccountName="default"),
    "with a secret": mirror(volumes=[SECRET_VOLUME]),
    "with a volume claim": mirror(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
}


class World:
    """The cluster around the attacker: his node, a victim, and what is theirs."""

    def __init__(self, plane: Any) -> None:
        self.plane = plane
        self.tokens = {name: pod_token(plane, name) for name in (OWN, UNBORN)}
        self.uid = ""

    def fill(self) -> None:
        """Make what the attacks are about: his own things as himself, the others as the administrator."""
        assert self.ask("POST", NODES, metadata(OWN)).code == 201
        self.uid = self.plane.get("node", OWN)["metadata"]["uid"]
        kept = {"labels": {"node-role.kubernetes.io/kept": ""}, "annotations": {"confined": "kept"}}
        self.admin("patch", "node", OWN, "--patch", json.dumps({"metadata": kept | {"finalizers": ["example.com/f"]}}))
        labels = {"labels": {"confined": "victim"}}
        victims = [
            {"apiVersion": "v1", "kind": "Node", **metadata(OTHER, **labels)},
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                **metadata(OTHER, **labels),
                "spec": {"drivers": []},
            },
            {"apiVersion": "v1", "kind": "Pod", **pod(THEIRS, OTHER, **labels)},
            {"apiVersion": "v1", "kind": "Pod", **pod(MINE, OWN, spec=CLAIM, finalizers=["example.com/f"])},
            {
                "apiVersion": "v1",
                "kind": "Pod",
                **pod("confined-pending", "", spec={"schedulingGates": [{"name": "example.com/never"}]}),
            },
            {"apiVersion": "v1", "kind": "Event", **event(ABOUT_OTHER, OTHER, "confined-theirs")},
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                **lease(OTHER, namespace="kube-node-lease", **labels),
            },
            {
                "apiVersion": "certificates.k8s.io/v1",
                "kind": "CertificateSigningRequest",
                **signing_request(f"system:node:{OWN}", "system:nodes", "confined"),
            },
            {"apiVersion": "apps/v1", "kind": "StatefulSet", **REPLICAS},
        ]
        items = {"apiVersion": "v1", "kind": "List", "items": victims}
        self.admin("create", "-f", "-", input=json.dumps(items))
        assert self.ask("POST", EVENTS, event(ABOUT_OWN, OWN, "confined-mine")).code == 201

    def empty(self) -> None:
        """Take everything away again."""
        for kind, name in (("node", OWN), ("pod", MINE)):
            self.admin("patch", kind, name, "--type=merge", "--patch", '{"metadata":{"finalizers":null}}', check=False)
        gone = ("--ignore-not-found", "--wait=false")
        self.admin("delete", "pod", MINE, THEIRS, MIRROR, "confined-pending", "p", "--force", *gone)
        self.admin("delete", "node,csinode", OWN, UNBORN, OTHER, "confined-new", *gone)
        self.admin("delete", "lease", "--namespace=kube-node-lease", OWN, OTHER, "confined-new", *gone)
        self.admin("delete", "csr", "confined", *gone)
        self.admin("delete", "statefulset", f"--namespace={NAMESPACE}", "fake-kubelet", *gone)
        self.admin("delete", "event", "confined-mine", "confined-theirs", *gone)
        self.admin("delete", "pod", f"--namespace={NAMESPACE}", OWN, UNBORN, "--force", *gone)

    def admin(self, *words: str, **options: Any) -> str:
        return str(self.plane.kubectl(*words, **options))

    def ask(self, method: str, path: str, body: Any = None, *, as_node: str = OWN, **options: Any) -> Answer:
        """Ask as the account, from the pod of a node."""
        return ask(self.plane, self.tokens[as_node], method, path, self._with_uid(body), **options)

    def make(self, attack: Attack) -> Answer:
        body = attack.body
        if isinstance(body, str):
            body = signing_request(*body.split()[1:])
        return self.ask(attack.method, attack.path, body, as_node=attack.as_node, content_type=attack.content_type)

    def _with_uid(self, body: Any) -> Any:
        return None if body is None else json.loads(json.dumps(body).replace('"UID"', f'"{self.uid}"'))


def signing_request(name: str, group: str, called: str = "confined-csr") -> dict[str, Any]:
    """A request for a certificate by which a node, or an administrator, is known."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    pem = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    spec = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    return metadata(called) | {"spec": spec}


@pytest.fixture(scope="module")
def account(control_plane):
    with applied(control_plane):
        world = World(control_plane)
        try:
            world.fill()
            yield world
        finally:
            world.empty()


@pytest.fixture(scope="module")
def administrator(account):
    """The same account as a careless person would bind it."""
    name = "confined-cluster-admin"
    account.admin("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", f"--user={USER}")
    eventually(lambda: account.ask("GET", "/api/v1/secrets").code == 200, within=30)
    yield account
    account.admin("delete", "clusterrolebinding", name)
    eventually(lambda: account.ask("GET", "/api/v1/secrets").code == 403, within=30)


@pytest.fixture(scope="module")
def static_pods(account):
    """The same account with the right to create pods in the default namespace, as rbac.yaml says."""
    role = "fake-kubelet-static-pods"
    words = ("create", "rolebinding", role, "--namespace=default", f"--clusterrole={role}")
    account.admin(*words, "--serviceaccount=fake-kubelet:fake-kubelet")
    eventually(lambda: account.ask("POST", f"{PODS}?dryRun=All", pod("p", OTHER)).refused_by == "policy", within=30)
    yield account
    account.admin("delete", "rolebinding", "--namespace=default", role)


def named(attacks):
    return [pytest.param(attack, id=attack.name.replace(" ", "-")) for attack in attacks]


@pytest.mark.parametrize("attack", named(ATTACKS))
def test_an_attack_is_refused(account, attack):
    answer = account.make(attack)
    assert (answer.refused_by, answer.code) == (attack.by, 403), answer


@pytest.mark.parametrize(("method", "path"), BY_RBAC_ALONE)
def test_it_is_not_granted(account, method, path):
    answer = account.ask(method, path)
    assert (answer.refused_by, answer.code) == ("RBAC", 403), answer


@pytest.mark.parametrize("user", ["system:admin", f"system:node:{OTHER}", "system:kube-controller-manager"])
def test_it_becomes_nobody_else(account, user):
    answer = account.ask("GET", NODES, headers={"Impersonate-User": user})
    assert (answer.refused_by, answer.code) == ("RBAC", 403), answer


@pytest.mark.parametrize("mirror_pod", MIRRORS.values(), ids=[name.replace(" ", "-") for name in MIRRORS])
def test_a_mirror_pod_is_refused(static_pods, mirror_pod):
    answer = static_pods.ask("POST", PODS, mirror_pod)
    assert (answer.refused_by, answer.code) == ("policy", 403), answer


@pytest.mark.parametrize("mirror_pod", OF_ACCOUNTS.values(), ids=[name.replace(" ", "-") for name in OF_ACCOUNTS])
def test_a_mirror_pod_with_rights_is_refused(static_pods, mirror_pod):
    answer = static_pods.ask("POST", PODS, mirror_pod)
    assert answer.code == 403, answer


def test_a_mirror_pod_of_the_own_node_is_shown(static_pods):
    assert static_pods.ask("POST", PODS, mirror(volumes=[HOST_PATH])).code == 201
    assert static_pods.ask("DELETE", f"{PODS}/{MIRROR}?gracePeriodSeconds=0").code == 200


@pytest.mark.parametrize("namespace", ["kube-system", NAMESPACE], ids=["in-kube-system", "in-its-own-namespace"])
def test_static_pods_stay_in_their_namespace(static_pods, namespace):
    answer = static_pods.ask("POST", f"/api/v1/namespaces/{namespace}/pods", mirror())
    assert answer.refused_by == "RBAC", answer


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", f"{NODES}/{OWN}/status", INTERNAL_IP),
        ("PATCH", f"{NODES}/{OWN}/status", relabel(**{"kubernetes.io__hostname": OWN, "kubernetes.io__os": "linux"})),
        ("PATCH", f"{NODES}/{OWN}/status", relabel(**{"topology.kubernetes.io__zone": "a", "team": "mine"})),
        ("PATCH", f"{NODES}/{OWN}/status", relabel(**{"node.kubernetes.io__a": "b", "kubelet.kubernetes.io__a": "b"})),
        ("POST", LEASES, lease(OWN, ownerReferences=[ABOUT_OWN | {"uid": "UID"}])),
        ("PUT", f"{LEASES}/{OWN}", lease(OWN)),
        ("POST", CSINODES, metadata(OWN, ownerReferences=[ABOUT_OWN | {"uid": "UID"}]) | {"spec": {"drivers": []}}),
        ("DELETE", f"{CSINODES}/{OWN}", None),
        ("PATCH", f"{PODS}/{MINE}/status", {"status": {"phase": "Running"}}),
        ("PATCH", f"{EVENTS}/confined-mine", {"count": 2}),
    ],
)
def test_his_own_node_is_his(account, method, path, body):
    answer = account.ask(method, path, body)
    assert answer.code in {200, 201}, answer


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", NODES, metadata("confined-new")),
        ("PATCH", f"{NODES}/{OWN}/status", INTERNAL_IP),
        ("POST", LEASES, lease("confined-new")),
        ("POST", CSINODES, metadata("confined-new") | {"spec": {"drivers": []}}),
        ("DELETE", f"{PODS}/{MINE}", None),
        ("DELETE", f"{PODS}/confined-pending", None),
        ("PATCH", f"{PODS}/{MINE}/status", {"status": {"phase": "Failed"}}),
        ("POST", EVENTS, event(ABOUT_OWN, OWN, "confined-e9")),
        ("POST", EVENTS, event({"kind": "Pod", "name": MINE, "namespace": "default"}, "", "confined-e10")),
    ],
)
def test_a_token_of_no_pod_writes_nothing(account, method, path, body):
    answer = ask(account.plane, unbound_token(account.plane), method, path, body)
    assert (answer.refused_by, answer.code) == ("policy", 403), answer


def test_a_token_from_a_secret_writes_nothing(account):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        **metadata("legacy", namespace=NAMESPACE, annotations={"kubernetes.io/service-account.name": "fake-kubelet"}),
        "type": "kubernetes.io/service-account-token",
    }
    account.admin("create", "-f", "-", input=json.dumps(secret))
    read = lambda: account.plane.get("secret", "legacy", NAMESPACE).get("data", {}).get("token")  # noqa: E731
    token = base64.b64decode(eventually(read, within=30)).decode()
    answer = ask(account.plane, token, "PATCH", f"{NODES}/{OWN}/status", INTERNAL_IP)
    account.admin("delete", "secret", "legacy", f"--namespace={NAMESPACE}")
    assert (answer.refused_by, answer.code) == ("policy", 403), answer


def test_a_token_ends_with_its_pod(account):
    token = pod_token(account.plane, "confined-short")
    account.admin("delete", "pod", "confined-short", f"--namespace={NAMESPACE}", "--force")
    eventually(lambda: ask(account.plane, token, "POST", NODES, metadata("confined-short")).code == 401, within=60)


@pytest.mark.parametrize("attack", named(ATTACKS))
def test_the_policy_alone_holds_an_administrator(administrator, attack):
    """A role that somebody binds in error changes nothing."""
    answer = administrator.make(attack)
    assert (answer.refused_by, answer.code) == ("policy", 403), answer


def test_nothing_of_the_victim_has_changed(account):
    assert account.plane.get("node", OTHER)["status"].get("addresses") is None
    assert account.plane.get("pod", THEIRS)["status"]["phase"] == "Pending"
    assert "confined-new" not in account.admin("get", "nodes,csinodes,leases", "--all-namespaces", "--output=name")
