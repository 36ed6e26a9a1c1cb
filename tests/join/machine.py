"""A machine that wants to be a node, and has nothing but what a test gives it."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.agent_process import apart
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

UNAPPROVED_TOKEN = "waitin.0123456789abcdef"
_UNAPPROVED_GROUP = "system:bootstrappers:unapproved"


class Machine:
    """Files below one folder, and the processes that were started there."""

    def __init__(self, control_plane: ControlPlane, name: str, folder: Path) -> None:
        self.plane, self.name, self.folder = control_plane, name, folder
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

    def give_token(self, token: str = BOOTSTRAP_TOKEN) -> None:
        """Put bootstrap credentials there, as kubeadm does."""
        config = yaml.safe_load(self.plane.bootstrap_kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        self.bootstrap.write_text(yaml.safe_dump(config))
        self.bootstrap.chmod(0o600)

    def start(self, *flags: str, module: str = "agent", **environment: str) -> Process:
        """fake-kubelet with the flags of kubeadm's unit, and more."""
        return self.run([*self.flags, *flags], module=module, **environment)

    def run(self, arguments: Sequence[str], *, module: str = "agent", **environment: str) -> Process:
        """fake-kubelet with these arguments and no others."""
        argv = [sys.executable, "-m", module, *arguments]
        process = Process("fake-kubelet", argv, log=self.folder / "fake-kubelet.log", env=environment)
        process.start()
        self.processes.append(process)
        return process

    def log_text(self) -> str:
        """What all of them have said."""
        return (self.folder / "fake-kubelet.log").read_text()

    def is_ready(self) -> bool:
        """Whether the cluster has a Node of ours that is Ready."""
        conditions = self.plane.get("node", self.name)["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def wait_until_ready(self, within: float = 30.0) -> None:
        eventually(self.is_ready, within=within, every=0.1)

    def requests(self) -> list[dict[str, Any]]:
        """What fake-kubelet asked of the API server since the machine was made, whoever it was then."""
        # Not by their place in the log: the watch of an earlier node is written there when it ends.
        lines = self.plane.audit_log.read_text().splitlines()
        ours = [request for line in lines if "fake-kubelet" in line and (request := json.loads(line))]
        return [
            request
            for request in ours
            if "fake-kubelet" in request.get("userAgent", "")
            and datetime.fromisoformat(request["requestReceivedTimestamp"]) >= self._made
        ]

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
        found = json.loads(self.plane.kubectl("get", "csr", "--output=json"))["items"]
        ours = [csr for csr in found if csr["metadata"]["name"] in self._asked()]
        return sorted(ours, key=lambda csr: csr["metadata"]["creationTimestamp"])

    def _asked(self) -> set[str]:
        asked = [request for request in self.requests() if "certificatesigningrequests" in request["requestURI"]]
        return {request["objectRef"].get("name", "") for request in asked} | {
            request["requestURI"].rpartition("%3D")[2].partition("&")[0] for request in asked
        }


def make_unapproved_token(plane: ControlPlane) -> str:
    """A token whose bearer may ask for a certificate that nobody approves by himself."""
    make_token(plane, UNAPPROVED_TOKEN, **{"auth-extra-groups": _UNAPPROVED_GROUP})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "unapproved-bootstrap"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:node-bootstrapper",
        },
        "subjects": [{"kind": "Group", "name": _UNAPPROVED_GROUP, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    plane.kubectl("apply", "-f", "-", input=json.dumps(binding))
    return UNAPPROVED_TOKEN


def make_token(plane: ControlPlane, token: str, **data: str) -> None:
    """A bootstrap token as `kubeadm token create` makes it, with more about it in its Secret."""
    identity, _, secret = token.partition(".")
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{identity}", "namespace": "kube-system"},
        "stringData": {
            "token-id": identity,
            "token-secret": secret,
            "usage-bootstrap-authentication": "true",
            **data,
        },
    }
    plane.kubectl("apply", "-f", "-", input=json.dumps(document))
