"""Everybody who could call a kubelet: strangers, impostors, administrators, and accounts with one right each."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from tests.cluster.api import NAMESPACES, NOBODY, Identity, bearer
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pairs import Pair, client_pair

# account → the rules of its ClusterRole, as verbs and subresources of nodes
_GRANTS = {
    "no-rights": (),
    "metrics": (("get", "metrics"),),
    "stats": (("get", "stats"),),
    "proxy": (("get create update", "proxy"),),
    "get-proxy": (("get", "proxy"),),
    "pods": (("get", "pods"),),
    "log": (("get", "log"),),
    "healthz": (("get", "healthz"),),
    "configz": (("get", "configz"),),
    "statusz": (("get", "statusz"),),
    "checkpoint": (("create", "checkpoint"),),
}


def everybody(plane: ControlPlane, folder: Path) -> list[Identity]:
    """All of them; what they need in the cluster is made."""
    pki, now, day = plane.layout.pki, datetime.now(UTC), timedelta(days=1)
    authority, masters = Pair.read(pki / "ca.crt", pki / "ca.key"), "system:masters"
    late = client_pair("late", authority, organization=masters, begin=now - 2 * day, end=now - day)
    early = client_pair("early", authority, organization=masters, begin=now + day, end=now + 2 * day)
    return [
        NOBODY,
        bearer("garbage token", "garbage"),
        Identity("no bearer", headers={"Authorization": "Basic dTpw"}),
        Identity("another CA", (pki / "front-proxy-client.crt", pki / "front-proxy-client.key")),
        Identity("expired", late.write(folder, "late")),
        Identity("not yet valid", early.write(folder, "early")),
        Identity("a server's", (pki / "apiserver.crt", pki / "apiserver.key")),
        Identity("no name", client_pair("", authority).write(folder, "nameless")),
        Identity("known, no rights", client_pair("jane", authority).write(folder, "jane")),
        Identity("system:masters", _from_kubeconfig(plane.directory / "super-admin.conf", folder)),
        Identity("API server", (pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key")),
        *accounts(plane),
    ]


def accounts(plane: ControlPlane) -> list[Identity]:
    """Service accounts with one right each."""
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(_manifests()))
    return [account(plane, name) for name in _GRANTS]


def account(plane: ControlPlane, name: str) -> Identity:
    """One of them, with a token that nobody has seen yet."""
    path = f"{NAMESPACES}/default/serviceaccounts/door-{name}/token"
    return bearer(f"account {name}", plane.api.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])


def _from_kubeconfig(path: Path, folder: Path) -> tuple[Path, Path]:
    user = yaml.safe_load(path.read_text())["users"][0]["user"]
    files = folder / "master.crt", folder / "master.key"
    for file, field in zip(files, ("client-certificate-data", "client-key-data"), strict=True):
        file.write_bytes(base64.b64decode(user[field]))
    return files


def _manifests() -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for name, grants in _GRANTS.items():
        meta = {"name": f"door-{name}"}
        rules = [{"apiGroups": [""], "resources": [f"nodes/{sub}"], "verbs": verbs.split()} for verbs, sub in grants]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
        subject = {"kind": "ServiceAccount", "name": meta["name"], "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": meta["name"]}
        made += [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "namespace": "default"}},
            role,
            {**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference},
        ]
        made[-1].pop("rules")
    return made
