"""The current context of a kubeconfig, in a form that the client library reads as client-go does.

The library reads token files once and as they are, prefers `token` to `tokenFile`, fails for a context without a user
and a server without a scheme, ignores impersonation, can hang in an exec plugin, writes keys to files in TMPDIR, and
lets `insecure-skip-tls-verify` win over an authority. This module handles all of these itself.
"""

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from agent.adapters.go_yaml import load_private
from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.model import Object

PemName = Literal["certificate-authority", "client-certificate", "client-key"]
PEM_NAMES: tuple[PemName, ...] = get_args(PemName)

_NO_USER = "nobody"
_AUTHORITY: Final = "certificate-authority"
_FILES = (*PEM_NAMES, "tokenFile")
_NOT_FOR_THE_LIBRARY = {"exec", "tokenFile", *PEM_NAMES, *(f"{name}-data" for name in PEM_NAMES)}
_INSECURE = "insecure-skip-tls-verify"


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context's cluster and user."""

    folder: Path  # relative commands start here
    cluster: Object = field(repr=False)  # its proxy-url may have a password
    user: Object = field(repr=False)
    files: tuple[Path, ...]  # what it was read from, and what it names

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers that ask the API server for impersonation."""
        return tuple(_impersonation(self.user))

    @property
    def plugin(self) -> Object | None:
        """The exec plugin that returns the credentials, if there is one."""
        plugin: Object | None = self.user.get("exec")
        return plugin

    @property
    def is_insecure(self) -> bool:
        """Whether the certificate of the API server is not verified."""
        return bool(self.cluster.get(_INSECURE))

    @property
    def document(self) -> Object:
        """A kubeconfig for the library: nothing in it but this cluster and this user, and no certificate or key."""
        user, cluster = (
            {key: value for key, value in part.items() if key not in _NOT_FOR_THE_LIBRARY}
            for part in (self.user, self.cluster)
        )
        return {
            "current-context": "only",
            "contexts": [{"name": "only", "context": {"cluster": "only", "user": _NO_USER}}],
            "clusters": [{"name": "only", "cluster": cluster}],
            "users": [{"name": _NO_USER, "user": user}],
        }

    def content(self, name: PemName) -> bytes:
        """Return a certificate or key, of the kubeconfig or of a file that it names; empty if there is none."""
        part = self.cluster if name == _AUTHORITY else self.user
        if data := part.get(f"{name}-data"):
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except (AttributeError, ValueError) as error:
                raise ConfigException(f"{name}-data is no base64") from error
        if not (path := part.get(name)):
            return b""
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ConfigException(f"{name} {path}: {error.strerror}") from error
        if not content:  # it must not mean that the system's authorities will do
            raise ConfigException(f"{name} {path} is empty")
        return content


def with_pair(config: Kubeconfig, pair: Path) -> Kubeconfig:
    """Return the kubeconfig with the certificate and key of this file, if the file exists."""
    if not pair.exists():
        return config
    names = ("client-certificate", "client-key")
    old = [config.user.get(key) for key in names]
    user = {key: value for key, value in config.user.items() if not key.startswith(names)}
    files = (*(path for path in config.files if str(path) not in old), pair)
    return replace(config, user=user | {"client-certificate": str(pair), "client-key": str(pair)}, files=files)


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Read the file and the token file it names. Raises ConfigException with what is wrong."""
    document = load_private(path.read_text("utf-8"))
    if not isinstance(document, dict):
        raise ConfigException("it holds no clusters, users and contexts")
    folder = Path(os.path.abspath(path.parent))  # noqa: PTH100  links in it stay as they are
    name = document.get("current-context")
    context = _named(document, "contexts", "context", name)
    cluster = _absolute(_named(document, "clusters", "cluster", context.get("cluster")), folder)
    check_verification(cluster)
    # client-go: a context without a user is somebody anonymous
    user = _named(document, "users", "user", context["user"]) if context.get("user") else {}
    user = _absolute(user, folder)
    cluster["server"] = server_of(cluster, user)
    files = (path, *(Path(part[key]) for part in (cluster, user) for key in _FILES if part.get(key)))
    if user.get("tokenFile"):
        user |= {"token": read_token(Path(user["tokenFile"]))}
    return Kubeconfig(folder, cluster, user, files)


def check_verification(cluster: Object) -> None:
    """Refuse, as client-go does, a cluster with both an authority and `insecure-skip-tls-verify`."""
    insecure = cluster.get(_INSECURE)
    if not isinstance(insecure, bool | None):
        raise ConfigException(f"{_INSECURE} must be true or false")
    if insecure and any(cluster.get(name) for name in (_AUTHORITY, f"{_AUTHORITY}-data")):
        raise ConfigException("specifying a root certificates file with the insecure flag is not allowed")


def read_token(path: Path) -> str:
    """Read the token in a file, without the end of line that editors add."""
    try:
        token = path.read_text("utf-8").strip()
    except OSError as error:
        raise ConfigException(f"token file {path}: {error.strerror}") from error
    if not token:
        raise ConfigException(f"token file {path} is empty")
    return token


def _named(document: Object, plural: str, singular: str, name: Any) -> Object:
    entries = document.get(plural)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(singular), dict):
            value: Object = entry[singular]
            return value
    raise ConfigException(f'{singular} "{name}" is not among its {plural}')


def server_of(cluster: Object, user: Object) -> str:
    """Return the URL of the API server; as in client-go, a host alone means https if there is a setting for TLS."""
    server = cluster.get("server")
    if not server or not isinstance(server, str):
        raise ConfigException("its cluster has no server")
    tls_settings = ("certificate-authority", "insecure-skip-tls-verify", "client-certificate")
    scheme = "https" if any(key.startswith(tls_settings) for key in (*cluster, *user)) else "http"
    url = server if "://" in server else f"{scheme}://{server}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ConfigException(f'its server must be a URL or a host:port pair: "{server}"')
    return url


def _absolute(part: Object, folder: Path) -> Object:
    """Make the names of files absolute, relative to the kubeconfig; data in the kubeconfig itself win over files."""
    resolved = dict(part)
    for key in _FILES:
        if resolved.get(f"{key}-data"):
            resolved.pop(key, None)
        elif resolved.get(key):
            resolved[key] = str(folder / str(resolved[key]))
    return resolved


def _impersonation(user: Object) -> Iterator[tuple[str, str]]:
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
    if user.get("as-uid"):
        yield "Impersonate-Uid", str(user["as-uid"])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    for key, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{key}", str(value)
