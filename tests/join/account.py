"""The service account of config/rbac on the real control plane, and requests in its name."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.api import LEASES, Answer
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

CONFIG = Path(__file__).parents[2] / "config" / "rbac"
RBAC = CONFIG / "rbac.yaml"
NAMESPACE = "fake-kubelet"
USER = "system:serviceaccount:fake-kubelet:fake-kubelet"
OPTIONAL_ROLES = ("fake-kubelet-deregister", "fake-kubelet-static-pods", "fake-kubelet-auth-delegator")


def refused_by(answer: Answer) -> str:
    """Who refused a request of the account: RBAC, policy, or nobody."""
    if answer.status == 403 and "ValidatingAdmissionPolicy 'fake-kubelet'" in answer.message:
        return "policy"
    return "RBAC" if answer.status == 403 and f'User "{USER}" cannot' in answer.message else "nobody"


@contextmanager
def applied(plane: ControlPlane) -> Iterator[None]:
    """Config/rbac as a user applies it, with its policy in force; all of it is gone after."""
    plane.kubectl("apply", "-k", str(CONFIG))
    try:
        stranger = plane.api.as_bearer(unbound_token(plane))
        lease = {"metadata": {"name": "nobody"}, "spec": {}}
        # The API server takes up a new policy a moment after it was made.
        eventually(lambda: refused_by(stranger.ask("POST", f"{LEASES}?dryRun=All", lease)) == "policy")
        yield
    finally:
        plane.kubectl("delete", "clusterrolebinding", *OPTIONAL_ROLES, "--ignore-not-found")
        plane.kubectl("delete", "rolebinding", "--namespace=default", *OPTIONAL_ROLES, "--ignore-not-found")
        plane.kubectl("delete", "-f", str(RBAC), "--wait=false")


def pod_token(plane: ControlPlane, name: str) -> str:
    """A token as the pod of this name would have; the pod waits for ever, and no node has to run it."""
    spec = {
        "serviceAccountName": "fake-kubelet",
        "schedulingGates": [{"name": "fake-kubelet.dev/never"}],
        "containers": [{"name": "node", "image": "fake-kubelet"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
    plane.kubectl("create", "-f", "-", input=json.dumps(pod))
    return unbound_token(plane, "--bound-object-kind=Pod", f"--bound-object-name={name}")


def unbound_token(plane: ControlPlane, *flags: str) -> str:
    """A token of the account; without flags it belongs to no pod."""
    return plane.kubectl("create", "token", "fake-kubelet", f"--namespace={NAMESPACE}", *flags).strip()
