"""Stock metrics-server beside a control plane, reached through the API server as in any cluster."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.process import Process
from tests.cluster.waiting import eventually

_NAME, _NAMESPACE = "metrics-server", "kube-system"
_API = "v1beta1.metrics.k8s.io"
_RULES = [
    {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]},
]


class MetricsServer:
    """One metrics-server with the rights of its own manifests, which trusts the cluster's authority and nobody else.

    Or anybody, for kubelets that sign for themselves: --kubelet-insecure-tls, which is widespread.
    """

    def __init__(
        self, control_plane: ControlPlane, directory: Path, *, binary: Path, trusts_anybody: bool = False
    ) -> None:
        self._plane, self._directory, self._binary = control_plane, directory, binary
        self._trust = (
            {"kubelet-insecure-tls": "true"}
            if trusts_anybody
            else {"kubelet-certificate-authority": control_plane.ca_file}
        )
        self._port = free_ports(1)[0]
        self.process = Process(_NAME, [], log=directory / f"{_NAME}.log")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, and wait until the API server reaches it."""
        self._plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(self._manifests()))
        self.process = Process(_NAME, [str(self._binary), *self._flags()], log=self.process.log)
        self.process.start()
        try:
            eventually(self._is_available, within=60, every=0.5)
        except AssertionError as error:
            self.stop()
            raise self.process.failure("is not reached by the API server") from error

    def stop(self) -> None:
        """Stop it, and take its API away: one that does not answer is in the way of every kubectl."""
        self._plane.kubectl("delete", "apiservice", _API, "--ignore-not-found")
        self.process.stop()

    def node(self, name: str) -> dict[str, Any]:
        """The NodeMetrics of a node; CommandFailed while there are none."""
        path = f"/apis/metrics.k8s.io/v1beta1/nodes/{name}"
        found: dict[str, Any] = json.loads(self._plane.kubectl("get", "--raw", path))
        return found

    def _is_available(self) -> bool:
        conditions = self._plane.get("apiservice", _API)["status"]["conditions"]
        return any(condition["type"] == "Available" and condition["status"] == "True" for condition in conditions)

    def _flags(self) -> list[str]:
        kubeconfig = self._kubeconfig()
        flags = {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": "127.0.0.1",
            "secure-port": self._port,
            "cert-dir": self._directory / "certificates",
            "kubelet-use-node-status-port": "true",
            "kubelet-preferred-address-types": "InternalIP",
            **self._trust,
            "metric-resolution": "10s",  # the least it takes, and a request has to end before
            "kubelet-request-timeout": "5s",
        }
        return [f"--{name}={value}" for name, value in flags.items()]

    def _kubeconfig(self) -> Path:
        """A kubeconfig as its service account."""
        token = self._plane.kubectl("create", "token", _NAME, "--namespace", _NAMESPACE, "--duration=1h").strip()
        config = yaml.safe_load(self._plane.admin_kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self._directory / f"{_NAME}.conf"
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    def _manifests(self) -> list[dict[str, Any]]:
        """What its release has, but for a Service that leads to this machine."""
        here = {"name": _NAME, "namespace": _NAMESPACE}
        group = {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
        }
        rbac = "rbac.authorization.k8s.io/v1"
        return [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
            {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": f"system:{_NAME}"}, "rules": _RULES},
            _binding("ClusterRoleBinding", f"system:{_NAME}"),
            _binding("ClusterRoleBinding", "system:auth-delegator"),
            _binding("RoleBinding", "extension-apiserver-authentication-reader"),
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": here,
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": _API},
                "spec": group | {"service": here | {"port": self._port}},
            },
        ]


def check_node_metrics(found: Mapping[str, Any]) -> None:
    """Check the form of NodeMetrics, which is the same for metrics-server and the embedded cluster."""
    assert found.keys() == {"kind", "apiVersion", "metadata", "timestamp", "window", "usage"}
    assert (found["kind"], found["apiVersion"]) == ("NodeMetrics", "metrics.k8s.io/v1beta1")
    assert found["metadata"].keys() >= {"name", "creationTimestamp", "labels"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["timestamp"])
    assert re.fullmatch(r"(\d+m)?\d+(\.\d+)?s", found["window"])
    assert found["usage"].keys() == {"cpu", "memory"}
    assert re.fullmatch(r"\d+[num]?", found["usage"]["cpu"])
    assert re.fullmatch(r"\d+([KMG]i)?", found["usage"]["memory"])


def _binding(kind: str, role: str) -> dict[str, Any]:
    namespaced = kind == "RoleBinding"
    metadata = {"name": f"{_NAME}:{role}"} | ({"namespace": _NAMESPACE} if namespaced else {})
    role_kind = "Role" if namespaced else "ClusterRole"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}],
    }
