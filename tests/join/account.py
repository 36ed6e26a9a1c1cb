"""The service account of config/rbac on the real control plane, and requests in its name."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually

CONFIG = Path(__file__).parents[2] / "config" / "rbac"
RBAC = CONFIG / "rbac.yaml"
NAMESPACE = "fake-kubelet"
USER = "system:serviceaccount:fake-kubelet:fake-kubelet"
OPTIONAL_ROLES = ("fake-kubelet-deregister", "fake-kubelet-static-pods", "fake-kubelet-auth-delegator")


class Answer(NamedTuple):
    """What the API server says to a request."""

    code: int
    message: str

    @property
    def refused_by(self) -> str:
        """Who refused it: RBAC, policy, or nobody."""
        if self.code == 403 and "ValidatingAdmissionPolicy 'fake-kubelet'" in self.message:
            return "policy"
        return "RBAC" if self.code == 403 and f'User "{USER}" cannot' in self.message else "nobody"


@contextmanager
def applied(plane: ControlPlane) -> Iterator[None]:
    """Config/rbac as a user applies it, with its policy in force; all of it is gone after."""
    plane.kubectl("apply", "-k", str(CONFIG))
    try:
        stranger = unbound_token(plane)
        lease = {"metadata": {"name": "nobody"}, "spec": {}}
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?dryRun=All"
        # The API server takes up a new policy a moment after it was made.
        eventually(lambda: ask(plane, stranger, "POST", path, lease).refused_by == "policy", within=30)
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


def ask(
    plane: ControlPlane,
    token: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    content_type: str = "",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Send one request as the bearer of the token."""
    kind = content_type or ("application/strategic-merge-patch+json" if method == "PATCH" else "application/json")
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    connection = http.client.HTTPSConnection("127.0.0.1", plane.layout.apiserver, context=context, timeout=30)
    try:
        sent = {"Authorization": f"Bearer {token}", "Content-Type": kind, **(headers or {})}
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        text = response.read().decode()
    finally:
        connection.close()
    is_status = response.status >= 400 and text.startswith("{")
    return Answer(response.status, json.loads(text)["message"] if is_status else text)
