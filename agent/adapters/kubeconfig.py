"""One context of a kubeconfig, with everything mended in it that the client library gets wrong.

The library reads token files once and as they are, prefers `token` to `tokenFile`, stumbles over a context without a
user and a server without a scheme, ignores impersonation, and can hang in an exec plugin. What comes out of here has
none of these in it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from agent.adapters.bounded_yaml import refuse_bombs
from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.model import Object

_NO_USER = "nobody"
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_NAMED = re.compile(r"(alias|tag) .*")  # where PyYAML repeats a word of the file: a token may begin with * or !


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context's cluster and user."""

    folder: Path  # relative commands start here
    cluster: Object = field(repr=False)  # its proxy-url may have a password
    user: Object = field(repr=False)
    files: tuple[Path, ...]  # what it was read from, and what it names

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Who is to be impersonated, in the words of the API server."""
        return tuple(_impersonation(self.user))

    @property
    def plugin(self) -> Object | None:
        """The exec plugin that knows the credentials, if there is one."""
        found: Object | None = self.user.get("exec")
        return found

    def document(self, granted: Object) -> Object:
        """A kubeconfig for the library: nothing in it but this cluster and this user, with what a plugin granted."""
        user = {key: value for key, value in self.user.items() if key not in {"exec", "tokenFile"}} | granted
        return {
            "current-context": "only",
            "contexts": [{"name": "only", "context": {"cluster": "only", "user": _NO_USER}}],
            "clusters": [{"name": "only", "cluster": self.cluster}],
            "users": [{"name": _NO_USER, "user": user}],
        }


def with_pair(config: Kubeconfig, pair: Path) -> Kubeconfig:
    """The same, but with the certificate and the key that one file holds, once it is there."""
    if not pair.exists():
        return config
    names = ("client-certificate", "client-key")
    old = [config.user.get(key) for key in names]
    user = {key: value for key, value in config.user.items() if not key.startswith(names)}
    files = (*(path for path in config.files if str(path) not in old), pair)
    return replace(config, user=user | {"client-certificate": str(pair), "client-key": str(pair)}, files=files)


def read_kubeconfig(path: Path) -> Kubeconfig:
    """Read the file and the token file it names; a ConfigException says what is wrong with it."""
    document = parsed(path.read_text("utf-8"))
    if not isinstance(document, dict):
        raise ConfigException("it holds no clusters, users and contexts")
    name = document.get("current-context")
    context = _named(document, "contexts", "context", name)
    cluster = _absolute(_named(document, "clusters", "cluster", context.get("cluster")), path.parent)
    # client-go: a context without a user is somebody anonymous
    user = _named(document, "users", "user", context["user"]) if context.get("user") else {}
    user = _absolute(user, path.parent)
    cluster["server"] = _server(cluster, user)
    files = (path, *(Path(part[key]) for part in (cluster, user) for key in _FILES if part.get(key)))
    if user.get("tokenFile"):
        user |= {"token": read_token(Path(user["tokenFile"]))}
    return Kubeconfig(path.parent, cluster, user, files)


def parsed(text: str) -> Any:
    """YAML that may hold secrets: a ConfigException says where it is broken, and repeats nothing of what is there."""
    try:
        refuse_bombs(text)
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigException(where + _NAMED.sub(r"\1", error.problem or "no YAML")) from None
    except (yaml.YAMLError, ValueError, KeyError, AttributeError) as error:  # a tag that its value does not fit
        raise ConfigException(f"no YAML: {type(error).__name__}") from None


def read_token(path: Path) -> str:
    """The token in a file, without the line's end that editors put there."""
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
            found: Object = entry[singular]
            return found
    raise ConfigException(f'{singular} "{name}" is not among its {plural}')


def _server(cluster: Object, user: Object) -> str:
    """The URL of the API server; a host alone is one of https where there is a word about TLS, as in client-go."""
    given = str(cluster.get("server") or "")
    if not given:
        raise ConfigException("its cluster has no server")
    about_tls = ("certificate-authority", "insecure-skip-tls-verify", "client-certificate")
    scheme = "https" if any(key.startswith(about_tls) for key in (*cluster, *user)) else "http"
    url = given if "://" in given else f"{scheme}://{given}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ConfigException(f'its server must be a URL or a host:port pair: "{given}"')
    return url


def _absolute(part: Object, folder: Path) -> Object:
    """Relative files are relative to the kubeconfig; data in the kubeconfig itself wins over them."""
    found = dict(part)
    for key in _FILES:
        if found.get(f"{key}-data"):
            found.pop(key, None)
        elif found.get(key):
            found[key] = str(folder / str(found[key]))
    return found


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
