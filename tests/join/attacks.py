"""What somebody would try who has the token of the service account of config/rbac."""

import base64
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.join.account import NAMESPACE, USER

OWN, UNBORN, OTHER = "confined-0", "confined-1", "confined-victim"  # his Node, one to be, and a real one
MINE, THEIRS, PENDING = "confined-mine", "confined-theirs", "confined-pending"  # pods of OWN, of OTHER, of no node
MIRROR = f"static-{OWN}"
NEW = "confined-new"  # what does not exist
UID, VERSION = "UID", "VERSION"  # stand for the UID of OWN, and the resourceVersion of the Lease of OTHER

Object = dict[str, Any]

NODES, CSINODES = "/api/v1/nodes", "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SYSTEM_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PODS, EVENTS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts/{}/token"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
WORKLOADS = "/apis/apps/v1/namespaces"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
VICTIMS = "labelSelector=confined%3Dvictim"

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"


class Attack(NamedTuple):
    """One request, and who has to refuse it where the account has the roles of config/rbac."""

    name: str
    by: str
    method: str
    path: str
    body: Any = None
    as_node: str = OWN
    content_type: str = ""


def metadata(name: str, **more: Any) -> Object:
    return {"metadata": {"name": name, **more}}


def lease(name: str, **more: Any) -> Object:
    return metadata(name, **more) | {"spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}


def csinode(name: str, **more: Any) -> Object:
    return metadata(name, **more) | {"spec": {"drivers": []}}


def event(about: Object, host: str, name: str, **more: Any) -> Object:
    source = {"component": "kubelet", "host": host}
    return metadata(name, **more) | {"involvedObject": about, "source": source, "reason": "Lie", "message": "lie"}


def pod(name: str, node: str, *, spec: Object | None = None, **more: Any) -> Object:
    return metadata(name, **more) | {"spec": {"nodeName": node, "containers": CONTAINERS, **(spec or {})}}


def mirror(*, node: str = OWN, owner: Object | None = None, **spec: Any) -> Object:
    """A mirror pod as NodeRestriction wants one, but for what is given."""
    owners = [ABOUT_OWN | {"uid": UID, "controller": True} | (owner or {})]
    return pod(MIRROR, node, spec=spec, annotations=MARKS, ownerReferences=owners)


def with_variable(source: str) -> Object:
    variable = {"name": "A", "valueFrom": {source: {"name": "s", "key": "k"}}}
    return mirror(containers=[{**CONTAINERS[0], "env": [variable]}])


def with_volume(**source: Any) -> Object:
    return mirror(volumes=[{"name": "v", **source}])


def labelled(key: str, value: str | None = "") -> Object:
    return {"metadata": {"labels": {key: value}}}


def annotated(key: str, value: str | None = "") -> Object:
    return {"metadata": {"annotations": {key: value}}}


def signing_request(name: str, user: str, group: str) -> Object:
    """A request for a certificate by which the bearer is this user of this group."""
    words = ((NameOID.ORGANIZATION_NAME, group), (NameOID.COMMON_NAME, user))
    subject = x509.Name([x509.NameAttribute(kind, word) for kind, word in words])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    spec = {
        "request": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    return metadata(name) | {"spec": spec}


def on_own_node(name: str, patch: Object, content_type: str = "") -> Attack:
    return Attack(name, "policy", "PATCH", f"{NODES}/{OWN}/status", patch, content_type=content_type)


def on_other_node(name: str, patch: Any, content_type: str = "", query: str = "") -> Attack:
    return Attack(name, "policy", "PATCH", f"{NODES}/{OTHER}/status{query}", patch, content_type=content_type)


def registering(name: str, *, spec: Object | None = None, **more: Any) -> Attack:
    return Attack(name, "policy", "POST", NODES, metadata(UNBORN, **more) | {"spec": spec or {}}, UNBORN)


def on_pod(name: str, patch: Object, pod_name: str, content_type: str = "") -> Attack:
    return Attack(name, "policy", "PATCH", f"{PODS}/{pod_name}/status", patch, content_type=content_type)


def telling(name: str, told: Object) -> Attack:
    return Attack(name, "policy", "POST", EVENTS, told)


CONTAINERS = [{"name": "main", "image": "pause"}]
MARKS = {"kubernetes.io/config.mirror": "x"}
A_NODE = {"apiVersion": "v1", "kind": "Node"}
ABOUT_OWN, ABOUT_OTHER = A_NODE | {"name": OWN}, A_NODE | {"name": OTHER}
ABOUT_SECRET = {"kind": "Secret", "name": "s", "namespace": "default"}
FOREIGN = [ABOUT_OTHER | {"uid": UID}]
BLOCKING = [ABOUT_OTHER | {"uid": UID, "blockOwnerDeletion": True}]
HELD = ["example.com/hold"]
HOLD, LET_GO = {"metadata": {"finalizers": HELD}}, {"metadata": {"finalizers": []}}
ADDRESS = "192.0.2.66"
REDIRECT = {"status": {"addresses": [{"type": "InternalIP", "address": ADDRESS}]}}
NOT_READY = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
POD_ADDRESS = {"status": {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}}
CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
CLAIMED = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "theirs"}]}}
ROOT_OF_HOST = {"name": "root", "hostPath": {"path": "/"}}
PRIVILEGED = {
    "containers": [{"name": "main", "image": "pause", "securityContext": {"privileged": True}}],
    "volumes": [ROOT_OF_HOST],
    "hostPID": True,
}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", **metadata(THEIRS, namespace="default")}
BINDING = metadata(PENDING) | {"target": {"kind": "Node", "name": OWN}}
DEBUGGER = {"spec": {"ephemeralContainers": [{"name": "d", "image": "pause"}]}}
BIGGER = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
APPROVED = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}}
ADMINISTRATOR = metadata("confined-admin") | {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
}
EVERYTHING = {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
TOKEN_SECRET = metadata("t", annotations={"kubernetes.io/service-account.name": "fake-kubelet"}) | {
    "type": "kubernetes.io/service-account-token"
}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
WORKLOAD = {"spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
NEW_EVENT = metadata("confined-e8") | {
    "regarding": ABOUT_OTHER,
    "reason": "Lie",
    "action": "Lie",
    "type": "Normal",
    "reportingController": "kubelet",
    "reportingInstance": OWN,
    "eventTime": "2026-01-02T03:04:05.000000Z",
}

ON_NODES = [
    Attack("create a Node", "policy", "POST", NODES, metadata(NEW)),
    Attack("create a Node by generateName", "policy", "POST", NODES, {"metadata": {"generateName": OWN}}),
    Attack("apply a Node", "RBAC", "PATCH", f"{NODES}/{NEW}?fieldManager=x", A_NODE | metadata(NEW), OWN, APPLY),
    on_other_node("redirect a Node", REDIRECT),
    on_other_node("redirect a Node by merge patch", REDIRECT, MERGE),
    on_other_node("redirect a Node by apply", A_NODE | metadata(OTHER) | REDIRECT, APPLY, "?fieldManager=x"),
    on_other_node("redirect a Node, dry", REDIRECT, query="?dryRun=All"),
    on_other_node("make a Node NotReady", NOT_READY),
    on_other_node("relabel a Node", labelled("team", "mine")),
    on_other_node("relabel by JSON patch", [{"op": "add", "path": "/metadata/labels/a", "value": "b"}], JSON_PATCH),
    Attack("replace a Node's status", "RBAC", "PUT", f"{NODES}/{OTHER}/status", metadata(OTHER) | REDIRECT),
    Attack("replace a Node", "RBAC", "PUT", f"{NODES}/{OTHER}", metadata(OTHER)),
    Attack("cordon a Node", "RBAC", "PATCH", f"{NODES}/{OTHER}", {"spec": {"unschedulable": True}}),
    Attack("delete a Node", "RBAC", "DELETE", f"{NODES}/{OTHER}"),
    Attack("delete all Nodes", "RBAC", "DELETE", f"{NODES}?{VICTIMS}"),
    Attack("speak to a kubelet", "RBAC", "POST", f"{NODES}/{OTHER}/proxy/run/default/p/c"),
]
ON_HIS_OWN_NODE = [
    on_own_node("take a node-restriction label", labelled("node-restriction.kubernetes.io/pci")),
    on_own_node("take a label below node-restriction", labelled("x.node-restriction.kubernetes.io/pci")),
    on_own_node("become a control plane", labelled("node-role.kubernetes.io/control-plane")),
    on_own_node("take a kubernetes.io label", labelled("kubernetes.io/anything")),
    on_own_node("take a k8s.io label", labelled("x.k8s.io/anything")),
    on_own_node("remove a reserved label", labelled("node-role.kubernetes.io/kept", None)),
    on_own_node("draw another's pods by hostname", labelled("kubernetes.io/hostname", OTHER)),
    on_own_node("annotate for a network", annotated("flannel.alpha.coreos.com/public-ip", ADDRESS)),
    on_own_node("remove an annotation", annotated("confined", None)),
    on_own_node("hold his Node", HOLD),
    on_own_node("let go of his Node", LET_GO, MERGE),
    on_own_node("have his Node collected", {"metadata": {"ownerReferences": FOREIGN}}),
    Attack("take off his taints", "RBAC", "PATCH", f"{NODES}/{OWN}", {"spec": {"taints": None}}),
    Attack("take a pod range", "RBAC", "PATCH", f"{NODES}/{OWN}", {"spec": {"podCIDR": "10.0.0.0/8"}}),
    Attack("replace his Node", "RBAC", "PUT", f"{NODES}/{OWN}", metadata(OWN)),
    registering("register with a pod range", spec={"podCIDR": "10.0.0.0/8", "podCIDRs": ["10.0.0.0/8"]}),
    registering("register as another machine", spec={"providerID": f"kind://docker/kind/{OTHER}"}),
    registering("register as a control plane", labels={"node-role.kubernetes.io/control-plane": ""}),
    registering("register with a reserved label", labels={"node-restriction.kubernetes.io/pci": ""}),
    registering("register with another's hostname", labels={"kubernetes.io/hostname": OTHER}),
    registering("register with an annotation", annotations={"flannel.alpha.coreos.com/public-ip": ADDRESS}),
    registering("register with an owner", ownerReferences=FOREIGN),
    registering("register with a finalizer", finalizers=HELD),
]
ON_LEASES_AND_CSINODES = [
    Attack("renew another's Lease", "policy", "PUT", f"{LEASES}/{OTHER}", lease(OTHER, resourceVersion=VERSION)),
    Attack("create another's Lease", "policy", "POST", LEASES, lease(NEW)),
    Attack("create another's Lease by PUT", "policy", "PUT", f"{LEASES}/{NEW}", lease(NEW)),
    Attack("delete another's Lease", "RBAC", "DELETE", f"{LEASES}/{OTHER}"),
    Attack("delete all Leases", "RBAC", "DELETE", f"{LEASES}?{VICTIMS}"),
    Attack("patch another's Lease", "RBAC", "PATCH", f"{LEASES}/{OTHER}", {"spec": {"holderIdentity": OWN}}),
    Attack("take a Lease of the control plane", "RBAC", "POST", SYSTEM_LEASES, lease(OWN)),
    Attack("hold another Node by a Lease", "policy", "POST", LEASES, lease(OWN, ownerReferences=BLOCKING)),
    Attack("hold his Lease", "policy", "POST", LEASES, lease(OWN, finalizers=HELD)),
    Attack("create another's CSINode", "policy", "POST", CSINODES, csinode(NEW)),
    Attack("delete another's CSINode", "policy", "DELETE", f"{CSINODES}/{OTHER}"),
    Attack("delete all CSINodes", "RBAC", "DELETE", f"{CSINODES}?{VICTIMS}"),
    Attack("patch a CSINode", "RBAC", "PATCH", f"{CSINODES}/{OTHER}", labelled("a")),
    Attack("hold another Node by a CSINode", "policy", "POST", CSINODES, csinode(OWN, ownerReferences=BLOCKING)),
]
ON_PODS = [
    Attack("run a privileged pod on a real node", "RBAC", "POST", PODS, pod("p", OTHER, spec=PRIVILEGED)),
    Attack("run a mirror pod on a real node", "RBAC", "POST", PODS, mirror(node=OTHER)),
    Attack("run a pod anywhere", "RBAC", "POST", PODS, pod("p", "")),
    Attack("run a pod on his node", "RBAC", "POST", PODS, pod("p", OWN)),
    Attack("delete another's pod", "policy", "DELETE", f"{PODS}/{THEIRS}"),
    Attack("delete another's pod at once", "policy", "DELETE", f"{PODS}/{THEIRS}?gracePeriodSeconds=0"),
    Attack("delete a pod of no node", "policy", "DELETE", f"{PODS}/{PENDING}"),
    Attack("delete the pod he runs in", "policy", "DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{OWN}"),
    Attack("delete all pods", "RBAC", "DELETE", f"{PODS}?{VICTIMS}"),
    on_pod("end another's pod", {"status": {"phase": "Failed"}}, THEIRS),
    on_pod("give another's pod an address", POD_ADDRESS, THEIRS),
    on_pod("nominate himself", {"status": {"nominatedNodeName": OWN}}, PENDING),
    on_pod("relabel a pod of his node", labelled("app", "database"), MINE),
    on_pod("annotate a pod of his node", annotated("example.com/a", "x"), MINE),
    on_pod("hold a pod of his node", HOLD, MINE),
    on_pod("let go of a pod of his node", LET_GO, MINE, MERGE),
    on_pod("claim a resource for a pod of his node", CLAIMED, MINE),
    Attack("replace a pod's status", "RBAC", "PUT", f"{PODS}/{THEIRS}/status", pod(THEIRS, OTHER)),
    Attack("patch a pod", "RBAC", "PATCH", f"{PODS}/{MINE}", labelled("app", "database")),
    Attack("evict a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/eviction", EVICTION),
    Attack("bind a pod to himself", "RBAC", "POST", f"{PODS}/{PENDING}/binding", BINDING),
    Attack("bind a pod by /bindings", "RBAC", "POST", "/api/v1/namespaces/default/bindings", BINDING),
    Attack("debug a pod", "RBAC", "PATCH", f"{PODS}/{THEIRS}/ephemeralcontainers", DEBUGGER),
    Attack("resize a pod", "RBAC", "PATCH", f"{PODS}/{THEIRS}/resize", BIGGER),
    Attack("run a command in a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/exec?command=id&stdout=true"),
    Attack("attach to a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/attach?stdout=true"),
    Attack("forward a port of a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/portforward"),
    Attack("go through a pod", "RBAC", "POST", f"{PODS}/{THEIRS}/proxy/"),
]
ON_EVENTS = [
    telling("tell of another Node", event(ABOUT_OTHER, OWN, "confined-e1")),
    telling("tell in another's name", event(ABOUT_OTHER, OTHER, "confined-e2")),
    telling("tell of himself in another's name", event(ABOUT_OWN, OTHER, "confined-e3")),
    telling("tell in nobody's name", metadata("confined-e4") | {"involvedObject": ABOUT_OWN, "reason": "Lie"}),
    telling("tell of a Secret", event(ABOUT_SECRET, OWN, "confined-e5")),
    telling("hold an event", event(ABOUT_OWN, OWN, "confined-e6", finalizers=HELD)),
    telling("hold another Node by an event", event(ABOUT_OWN, OWN, "confined-e7", ownerReferences=BLOCKING)),
    Attack("rewrite another's event", "policy", "PATCH", f"{EVENTS}/{THEIRS}", {"message": "all is well"}),
    Attack("take over another's event", "policy", "PATCH", f"{EVENTS}/{THEIRS}", {"source": {"host": OWN}}),
    Attack("give an event to another", "policy", "PATCH", f"{EVENTS}/{MINE}", {"source": {"host": OTHER}}),
    Attack("delete an event", "RBAC", "DELETE", f"{EVENTS}/{THEIRS}"),
    Attack("tell by events.k8s.io", "RBAC", "POST", "/apis/events.k8s.io/v1/namespaces/default/events", NEW_EVENT),
]
ON_RIGHTS = [
    Attack("get a token", "RBAC", "POST", ACCOUNTS.format(NAMESPACE, "fake-kubelet"), TOKEN_REQUEST),
    Attack(
        "get a controller's token", "RBAC", "POST", ACCOUNTS.format("kube-system", "node-controller"), TOKEN_REQUEST
    ),
    Attack("become a node", "RBAC", "POST", CSRS, signing_request(NEW, f"system:node:{OTHER}", "system:nodes")),
    Attack("become root", "RBAC", "POST", CSRS, signing_request(NEW, "root", "system:masters")),
    Attack("approve a certificate", "RBAC", "PATCH", f"{CSRS}/confined/approval", APPROVED, OWN, MERGE),
    Attack("become an administrator", "RBAC", "POST", f"{ROLES}/clusterrolebindings", ADMINISTRATOR),
    Attack("widen his role", "RBAC", "PATCH", f"{ROLES}/clusterroles/fake-kubelet", EVERYTHING),
    Attack("make a Secret of his account", "RBAC", "POST", SECRETS, TOKEN_SECRET),
    Attack("run a Deployment", "RBAC", "POST", f"{WORKLOADS}/default/deployments", metadata("d") | WORKLOAD),
    Attack(
        "add a pod to his StatefulSet",
        "RBAC",
        "PATCH",
        f"{WORKLOADS}/{NAMESPACE}/statefulsets/fake-kubelet/scale",
        {"spec": {"replicas": 9}},
        OWN,
        MERGE,
    ),
    Attack("make a ConfigMap", "RBAC", "POST", "/api/v1/namespaces/kube-system/configmaps", metadata("c")),
]
ATTACKS = [*ON_NODES, *ON_HIS_OWN_NODE, *ON_LEASES_AND_CSINODES, *ON_PODS, *ON_EVENTS, *ON_RIGHTS]

# What the API server finds at fault before any policy, where nobody else refuses it.
INVALID = {"replace a Node", "replace his Node", "take a pod range", "resize a pod"}

# What admission never sees: reads, and writes of the policies themselves.
BY_RBAC_ALONE = [
    ("GET", "/api/v1/secrets"),
    ("GET", "/api/v1/secrets?watch=true"),
    ("GET", f"{SECRETS}/any"),
    ("GET", "/api/v1/configmaps"),
    ("GET", f"{PODS}/{THEIRS}/log"),
    ("GET", f"{NODES}/{OTHER}/proxy/logs/"),
    ("GET", SYSTEM_LEASES),
    ("DELETE", f"{POLICIES}/validatingadmissionpolicies/fake-kubelet"),
    ("DELETE", f"{POLICIES}/validatingadmissionpolicybindings/fake-kubelet"),
]

# Mirror pods that NodeRestriction would not let a node create either.
MIRRORS = {
    "on another node": mirror(node=OTHER),
    "that is none": pod(MIRROR, OWN),
    "without an owner": pod(MIRROR, OWN, annotations=MARKS),
    "of another owner": mirror(owner={"name": OTHER}),
    "of an owner that is no Node": mirror(owner={"apiVersion": "apps/v1", "kind": "ReplicaSet"}),
    "that its owner does not control": mirror(owner={"controller": False}),
    "that holds its Node": mirror(owner={"blockOwnerDeletion": True}),
    "with a variable from a config map": with_variable("configMapKeyRef"),
    "with a CSI volume": with_volume(csi={"driver": "example.com"}),
}
# The API server itself may refuse these first.
ODD_MIRRORS = {
    "with a variable from a secret": with_variable("secretKeyRef"),
    "with all variables of a secret": mirror(
        initContainers=[{"name": "i", "image": "pause", "envFrom": [{"secretRef": {"name": "s"}}]}]
    ),
    "with a token": with_volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
    "of no node": mirror(node=""),
    "with a pull secret": mirror(imagePullSecrets=[{"name": "s"}]),
    "with a resource claim": mirror(resourceClaims=[{"name": "c", "resourceClaimName": "theirs"}]),
    "with a file share": with_volume(azureFile={"secretName": "s", "shareName": "s"}),
    "with a service account": mirror(serviceAccountName="default"),
    "with a secret": with_volume(secret={"secretName": "s"}),
    "with a config map": with_volume(configMap={"name": "c"}),
    "with a volume claim": with_volume(persistentVolumeClaim={"claimName": "c"}),
}
