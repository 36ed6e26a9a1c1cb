"""Exec plugins: a command that knows the credentials, run with a deadline."""

import asyncio
import base64
import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.model import Object

DEADLINE_SECONDS = 30.0
_FOR_THE_PLUGIN = "client.authentication.k8s.io/exec"  # the name of its own settings among those of a cluster
_MOST_BYTES = 2**20  # of an answer: a token and a chain of certificates have some thousands
_MOST_WORDS = 500
_FIRST_YEAR, _LAST_YEAR = 1970, 2200
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a plugin answered, in a kubeconfig's words."""

    user: Object = field(repr=False)
    expires_at: datetime | None


async def ask_plugin(
    plugin: Object, *, cluster: Object, folder: Path, deadline_seconds: float = DEADLINE_SECONDS
) -> Grant:
    """Run the plugin; a ConfigException says why it gave no credentials."""
    command, version = str(plugin.get("command") or ""), str(plugin.get("apiVersion"))
    if not command or version not in _VERSIONS:
        raise ConfigException(f"exec: needs a command and one of the versions {', '.join(_VERSIONS)}")
    if plugin.get("interactiveMode") == "Always":
        raise ConfigException(f"exec: {command} wants to ask somebody, and a daemon has nobody to ask")
    argv = [_program(command, folder, plugin), *map(str, plugin.get("args") or ())]
    try:
        async with asyncio.timeout(deadline_seconds):
            return _grant(await _said(argv, await asyncio.to_thread(_environment, plugin, cluster)), version)
    except TimeoutError as error:
        raise ConfigException(f"exec: {command} did not answer within {deadline_seconds:g}s") from error


def _program(command: str, folder: Path, plugin: Object) -> str:
    """Where a command is: with a slash relative to the kubeconfig, else on PATH, but never in the working directory.

    As Go, whose exec.ErrDot it is. Python would run what an empty entry of PATH leads to.
    """
    folders = [folder] if "/" in command else map(Path, os.environ.get("PATH", os.defpath).split(":"))
    for path in (place / command for place in folders):
        if path.is_file() and os.access(path, os.X_OK):
            if not path.is_absolute():
                raise ConfigException(f'exec: "{command}": cannot run executable found relative to current directory')
            return str(path)
    hint = f"; {plugin['installHint']}" if plugin.get("installHint") else ""
    raise ConfigException(f"exec: {command}: No such file that can be run{hint}")


async def _said(argv: list[str], environment: dict[str, str]) -> bytes:
    pipe, silence = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env=environment, stdin=silence, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise ConfigException(f"exec: {argv[0]}: {error.strerror}") from error
    try:
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(_kept(process.stdout, on_excess=partial(_end, process)))
            complaining = group.create_task(_kept(process.stderr))
            group.create_task(process.wait())
    finally:
        if process.returncode is None:
            _end(process)
            await process.wait()
    answer, complaint = answering.result(), complaining.result()
    if len(answer) > _MOST_BYTES:
        raise ConfigException(f"exec: {argv[0]} answered with more than {_MOST_BYTES} bytes")
    if process.returncode:
        words = complaint.decode(errors="replace").strip()[:_MOST_WORDS]
        raise ConfigException(f"exec: {argv[0]} ended with {process.returncode}: {words}")
    return answer


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the plugin and what it has started: a child of it could keep our pipes open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _kept(stream: asyncio.StreamReader | None, on_excess: Callable[[], None] = lambda: None) -> bytes:
    """What is said, up to one byte too much; what follows is thrown away."""
    kept = bytearray()
    while stream and (part := await stream.read(2**16)):
        kept += part[: _MOST_BYTES + 1 - len(kept)]
        if len(kept) > _MOST_BYTES:
            on_excess()
    return bytes(kept)


def _environment(plugin: Object, cluster: Object) -> dict[str, str]:
    spec: Object = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
        spec["cluster"] = _with_authority({key: cluster[key] for key in known if key in cluster}, cluster)
        for extension in cluster.get("extensions") or ():
            if extension.get("name") == _FOR_THE_PLUGIN:
                spec["cluster"]["config"] = extension.get("extension")
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}
    own = {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or ()}
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _with_authority(told: Object, cluster: Object) -> Object:
    """A plugin gets the authority itself, also where the kubeconfig has but its file."""
    path = cluster.get("certificate-authority")
    if not path:
        return told
    try:
        return told | {"certificate-authority-data": base64.b64encode(Path(path).read_bytes()).decode()}
    except OSError as error:
        raise ConfigException(f"exec: failed to load CA bundle {path}: {error.strerror}") from error


def _grant(said: bytes, version: str) -> Grant:
    try:
        answer = json.loads(said)
        status = answer["status"]
        if answer["apiVersion"] != version or answer["kind"] != "ExecCredential":
            raise ConfigException(f"exec: the plugin answered with {answer['apiVersion']} {answer['kind']}")
        expires = status.get("expirationTimestamp")
        expires_at = datetime.fromisoformat(expires) if expires else None
        if expires_at and expires_at.tzinfo is None:  # Go refuses it, too
            raise ConfigException(f"exec: the plugin's expirationTimestamp {expires} has no time zone")
        if expires_at and not _FIRST_YEAR <= expires_at.year <= _LAST_YEAR:  # nobody can count from the calendar's ends
            raise ConfigException(f"exec: the plugin's expirationTimestamp {expires} makes no sense")
        return Grant(_user(status), expires_at)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigException("exec: the plugin's answer is no ExecCredential") from error


def _user(status: Object) -> Object:
    user: Object = {"token": str(status["token"]).strip()} if status.get("token") else {}
    if status.get("clientCertificateData"):
        user["client-certificate-data"] = _embedded(status["clientCertificateData"])
        user["client-key-data"] = _embedded(status["clientKeyData"])
    if not user:
        raise ConfigException("exec: the plugin gave neither a token nor a certificate")
    return user


def _embedded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
