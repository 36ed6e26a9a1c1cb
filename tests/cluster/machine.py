"""A machine that wants to be a node, and has nothing but what a test gives it."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.agent_process import apart
from tests.cluster.api import MERGE_PATCH, NAMESPACES, SIGNING_REQUESTS, Refused
from tests.cluster.audit import entries
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.node_view import NodeView
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

UNAPPROVED_TOKEN = "waitin.0123456789abcdef"
_SERVING = "kubernetes.io/kubelet-serving"
_UNAPPROVED_GROUP = "system:bootstrappers:unapproved"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
_TOKENS = f"{NAMESPACES}/kube-system/secrets"


class Machine(NodeView):
    """Files below one folder, the processes that were started there, and the Node that they make."""

    def __init__(self, control_plane: ControlPlane, name: str, folder: Path) -> None:
        super().__init__(control_plane, name)
        self.folder = folder
        self.kubeconfig, self.pki = folder / "kubelet.conf", folder / "pki"
        self.bootstrap = folder / "bootstrap-kubelet.conf"
        self.current = self.pki / "kubelet-client-current.pem"
        self.processes: list[Process] = []
        self._made = datetime.now(UTC)

    @property
    def flags(self) -> list[str]:
        """What a kubelet gets from kubeadm's systemd unit."""
        return [
            f"--bootstrap-kubeconfig={self.bootstrap}",
            f"--kubeconfig={self.kubeconfig}",
            f"--hostname-override={self.name}",
            "--healthz-port=0",
            *self.apart,
        ]

    @property
    def apart(self) -> list[str]:
        """Flags that keep it out of the way of others on this machine."""
        return apart(self.folder)

    def write_kubeconfig(self, user: Mapping[str, Any], **cluster: Any) -> None:
        """Several contexts, of which the current one is ours; the others lead nowhere."""
        config = yaml.safe_load(self.plane.bootstrap_kubeconfig.read_text())
        ours = config["clusters"][0]["cluster"] | cluster
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "ours",
            "clusters": [
                {"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}},
                {"name": "here", "cluster": {key: value for key, value in ours.items() if value}},
            ],
            "users": [{"name": "nobody", "user": {"token": "wrong"}}, {"name": "us", "user": user}],
            "contexts": [
                {"name": "other", "context": {"cluster": "nowhere", "user": "nobody"}},
                {"name": "ours", "context": {"cluster": "here", "user": "us"}},
            ],
        }
        self.kubeconfig.write_text(yaml.safe_dump(document))

    def give_token(self, token: str = BOOTSTRAP_TOKEN) -> None:
        """Put bootstrap credentials there, as kubeadm does."""
        config = yaml.safe_load(self.plane.bootstrap_kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        self.bootstrap.write_text(yaml.safe_dump(config))
        self.bootstrap.chmod(0o600)

    def start(self, *flags: str, module: str = "agent", **environment: str) -> Process:
        """fake-kubelet with the flags of kubeadm's unit, and more."""
        return self.run([*self.flags, *flags], module=module, **environment)

    def start_overheard(self, *flags: str) -> Process:
        """The same; `overheard` has what it does."""
        return self.start(*flags, module="tests.cluster.overheard", OVERHEARD=str(self.folder / "overheard"))

    def overheard(self, what: str) -> list[str]:
        """The command lines of its children (`exec`), or the files of the machine that it opened (`open`)."""
        lines = (self.folder / "overheard").read_text().splitlines()
        return [line.removeprefix(f"{what} ") for line in lines if line.startswith(f"{what} ")]

    def start_by_kubeconfig(self, *flags: str) -> Process:
        """fake-kubelet with the kubeconfig that is there, and no bootstrap."""
        common = (f"--kubeconfig={self.kubeconfig}", f"--hostname-override={self.name}", "--healthz-port=0")
        return self.run([*common, *self.apart, *flags])

    def run(self, arguments: Sequence[str], *, module: str = "agent", **environment: str) -> Process:
        """fake-kubelet with these arguments and no others."""
        argv = [sys.executable, "-m", module, *arguments]
        process = Process("fake-kubelet", argv, log=self.folder / "fake-kubelet.log", env=environment)
        process.start()
        self.processes.append(process)
        return process

    def join(self, *words: str) -> Process:
        """`fake-kubelet join` with these words, and all files in the machine's folder."""
        self.bootstrap.unlink(missing_ok=True)
        return self.run(["join", *words, *self.flags, f"--client-ca-file={self.folder / 'ca.crt'}"])

    def join_by_token(
        self, *, token: str = BOOTSTRAP_TOKEN, ca_hash: str | None = None, more: Sequence[str] = ()
    ) -> Process:
        """The same as kubeadm prints it."""
        pinned = ("--discovery-token-ca-cert-hash", ca_hash or self.plane.pin)
        return self.join(self.plane.endpoint, "--token", token, *pinned, *more)

    def serving_requests(self) -> list[dict[str, Any]]:
        """The serving certificates among what was asked for."""
        return [csr for csr in self.signing_requests() if csr["spec"]["signerName"] == _SERVING]

    def log_text(self) -> str:
        """What all of them have said."""
        return (self.folder / "fake-kubelet.log").read_text()

    def requests(self) -> list[dict[str, Any]]:
        """What fake-kubelet asked of the API server since the machine was made, whoever it was then."""
        # Not by their place in the log: the watch of an earlier node is written there when it ends.
        return [
            request
            for request in entries(self.plane.audit_log, "fake-kubelet")
            if "fake-kubelet" in request.get("userAgent", "")
            and datetime.fromisoformat(request["requestReceivedTimestamp"]) >= self._made
            and not self._is_another_node(request["user"].get("username", ""))
        ]

    def _is_another_node(self, user: str) -> bool:
        """Other tests may have nodes on this cluster for longer than a test."""
        return user.startswith("system:node:") and user != f"system:node:{self.name}"

    def users(self) -> set[str]:
        return {request["user"].get("username", "nobody") for request in self.requests()}

    def refusals(self) -> list[tuple[str, str]]:
        """The requests that were answered with 401 or 403."""
        return [
            (request["user"].get("username", "nobody"), request["requestURI"])
            for request in self.requests()
            if request["responseStatus"]["code"] in {401, 403}
        ]

    def signing_requests(self) -> list[dict[str, Any]]:
        """The certificates that were asked for in our name, oldest first."""
        # Not by their creationTimestamp: two may be of one second.
        asked = {name: place for place, name in reversed(list(enumerate(self._asked())))}
        ours = [csr for csr in self.api.items(SIGNING_REQUESTS) if csr["metadata"]["name"] in asked]
        return sorted(ours, key=lambda csr: asked[csr["metadata"]["name"]])

    def approve(self, request: dict[str, Any], verdict: str = "Approved") -> None:
        """Do as `kubectl certificate approve`, or with Denied as `kubectl certificate deny`."""
        reason = {"Approved": "KubectlApprove", "Denied": "KubectlDeny"}[verdict]
        condition = {"type": verdict, "status": "True", "reason": reason, "message": "by the test"}
        path = f"{SIGNING_REQUESTS}/{request['metadata']['name']}/approval"
        self.api.patch(path, {"status": {"conditions": [condition]}}, MERGE_PATCH)

    def stop(self) -> None:
        """End all processes and remove the Node: not before, or it would register again."""
        for process in self.processes:
            process.stop()
        self.delete_node()

    def _asked(self) -> list[str]:
        """The names of the certificates that were asked for or looked at, in the order of the requests."""
        asked = [request for request in self.requests() if "certificatesigningrequests" in request["requestURI"]]
        asked.sort(key=lambda request: str(request["requestReceivedTimestamp"]))
        return [
            request["objectRef"].get("name") or request["requestURI"].rpartition("%3D")[2].partition("&")[0]
            for request in asked
        ]


def make_unapproved_token(plane: ControlPlane) -> str:
    """A token whose bearer may ask for a certificate that nobody approves by himself."""
    make_token(plane, UNAPPROVED_TOKEN, **{"auth-extra-groups": _UNAPPROVED_GROUP})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"}
    group = {"kind": "Group", "name": _UNAPPROVED_GROUP, "apiGroup": "rbac.authorization.k8s.io"}
    _create(plane, _BINDINGS, {"metadata": {"name": "unapproved-bootstrap"}, "roleRef": role, "subjects": [group]})
    bearer = plane.api.as_bearer(UNAPPROVED_TOKEN)
    eventually(lambda: bearer.ask("GET", SIGNING_REQUESTS).status == 200)
    return UNAPPROVED_TOKEN


def make_token(plane: ControlPlane, token: str, **data: str) -> str:
    """A bootstrap token as `kubeadm token create` makes it, with more about it in its Secret; where that is."""
    identity, _, secret = token.partition(".")
    name = f"bootstrap-token-{identity}"
    document = {
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": name},
        "stringData": {
            "token-id": identity,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            **data,
        },
    }
    _create(plane, _TOKENS, document)
    return f"{_TOKENS}/{name}"


def _create(plane: ControlPlane, path: str, document: Mapping[str, Any]) -> None:
    """Make an object that an earlier test may have made already."""
    try:
        plane.api.create(path, document)
    except Refused as refusal:
        if refusal.code != HTTPStatus.CONFLICT:
            raise
