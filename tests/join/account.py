"""The service account of config/rbac on the real control plane, and requests in its name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.api import LEASES, NAMESPACES, Answer
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

CONFIG = Path(__file__).parents[2] / "config" / "rbac"
RBAC = CONFIG / "rbac.yaml"
FLEET_RBAC = CONFIG / "fleet.yaml"
NAMESPACE = "fake-kubelet"
USER = "system:serviceaccount:fake-kubelet:fake-kubelet"
_PODS = f"{NAMESPACES}/{NAMESPACE}/pods"
_RBAC_API = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
OPTIONAL_ROLES = ("fake-kubelet-deregister", "fake-kubelet-static-pods", "fake-kubelet-auth-delegator")


def refused_by(answer: Answer) -> str:
    """Who refused a request of the account: RBAC, policy, or nobody."""
    if answer.status == 403 and "ValidatingAdmissionPolicy 'fake-kubelet'" in answer.message:
        return "policy"
    return "RBAC" if answer.status == 403 and f'User "{USER}" cannot' in answer.message else "nobody"


def apply(plane: ControlPlane) -> None:
    """Apply config/rbac as a user does, and wait until its policy is in force; once in the life of a cluster."""
    plane.kubectl("apply", "-k", str(CONFIG))
    stranger = plane.api.as_bearer(unbound_token(plane))
    lease = {"metadata": {"name": "nobody"}, "spec": {}}
    # The API server takes up a new policy a moment after it was made.
    eventually(lambda: refused_by(stranger.ask("POST", f"{LEASES}?dryRun=All", lease)) == "policy")


@contextmanager
def bound(plane: ControlPlane, name: str, role: str, *, namespace: str = "", **right: str) -> Iterator[None]:
    """One more role for the account, as rbac.yaml says; `right` is one that it has only by this role.

    The API server takes up a binding, and its end, a moment later: both are waited for.
    """
    path = f"{_RBAC_API}/namespaces/{namespace}/rolebindings" if namespace else f"{_RBAC_API}/clusterrolebindings"
    subject = {"kind": "ServiceAccount", "name": "fake-kubelet", "namespace": NAMESPACE}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    plane.api.create(path, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    try:
        eventually(lambda: _may(plane, right, namespace))
        yield
    finally:
        plane.api.delete(f"{path}/{name}")
        eventually(lambda: not _may(plane, right, namespace))


def _may(plane: ControlPlane, right: Mapping[str, str], namespace: str) -> bool:
    """Whether the account has a right, by the API server's own word."""
    review = {"spec": {"user": USER, "resourceAttributes": {**right, "namespace": namespace}}}
    return bool(plane.api.create(_REVIEWS, review)["status"]["allowed"])


@contextmanager
def pod_token(plane: ControlPlane, name: str) -> Iterator[str]:
    """A token as the pod of this name would have; the pod waits for ever, and no node has to run it."""
    spec = {
        "serviceAccountName": "fake-kubelet",
        "schedulingGates": [{"name": "fake-kubelet.dev/never"}],
        "containers": [{"name": "node", "image": "fake-kubelet"}],
    }
    plane.api.create(_PODS, {"metadata": {"name": name}, "spec": spec})
    try:
        yield unbound_token(plane, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": name})
    finally:
        plane.api.delete(f"{_PODS}/{name}?gracePeriodSeconds=0")


def unbound_token(plane: ControlPlane, account: str = "fake-kubelet", **spec: Any) -> str:
    """A token of the account; without a reference to a pod it belongs to none."""
    path = f"{NAMESPACES}/{NAMESPACE}/serviceaccounts/{account}/token"
    return str(plane.api.create(path, {"spec": spec})["status"]["token"])
