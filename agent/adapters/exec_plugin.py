"""Exec plugins: a command that returns credentials, run with a deadline."""

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
_MOST_CHARACTERS = 500
_FIRST_YEAR, _LAST_YEAR = 1970, 2200
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credentials of a plugin, as the user of a kubeconfig."""

    user: Object = field(repr=False)
    expires_at: datetime | None


async def run_plugin(
    plugin: Object, *, cluster: Object, folder: Path, deadline_seconds: float = DEADLINE_SECONDS
) -> ExecCredential:
    """Run the plugin. Raises ConfigException if it returns no credentials."""
    command, version = str(plugin.get("command") or ""), str(plugin.get("apiVersion"))
    if not command or version not in _VERSIONS:
        raise ConfigException(f"exec: needs a command and one of the versions {', '.join(_VERSIONS)}")
    if plugin.get("interactiveMode") == "Always":
        raise ConfigException(f"exec: {command} wants to ask somebody, and a daemon has nobody to ask")
    argv = [_program(command, folder, plugin), *map(str, plugin.get("args") or ())]
    try:
        async with asyncio.timeout(deadline_seconds):
            return _decoded(await _output(argv, await asyncio.to_thread(_environment, plugin, cluster)), version)
    except TimeoutError as error:
        raise ConfigException(f"exec: {command} did not answer within {deadline_seconds:g}s") from error


def _program(command: str, folder: Path, plugin: Object) -> str:
    """Return the path of a command: relative to the kubeconfig if it has a slash, else on PATH.

    Never in the working directory, as Go's exec.ErrDot. Python would run what an empty entry of PATH leads to.
    """
    folders = [folder] if "/" in command else map(Path, os.environ.get("PATH", os.defpath).split(":"))
    for path in (place / command for place in folders):
        if path.is_file() and os.access(path, os.X_OK):
            if not path.is_absolute():
                raise ConfigException(f'exec: "{command}": cannot run executable found relative to current directory')
            return str(path)
    hint = f"; {plugin['installHint']}" if plugin.get("installHint") else ""
    raise ConfigException(f"exec: {command}: No such file that can be run{hint}")


async def _output(argv: list[str], environment: dict[str, str]) -> bytes:
    pipe, devnull = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env=environment, stdin=devnull, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise ConfigException(f"exec: {argv[0]}: {error.strerror}") from error
    try:
        async with asyncio.TaskGroup() as group:
            reading_stdout = group.create_task(_read_bounded(process.stdout, on_excess=partial(_kill, process)))
            reading_stderr = group.create_task(_read_bounded(process.stderr))
            group.create_task(process.wait())
    finally:
        if process.returncode is None:
            _kill(process)
            await process.wait()
    stdout, stderr = reading_stdout.result(), reading_stderr.result()
    if len(stdout) > _MOST_BYTES:
        raise ConfigException(f"exec: {argv[0]} answered with more than {_MOST_BYTES} bytes")
    if process.returncode:
        message = stderr.decode(errors="replace").strip()[:_MOST_CHARACTERS]
        raise ConfigException(f"exec: {argv[0]} ended with {process.returncode}: {message}")
    return stdout


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill the plugin and what it has started: a child of it could keep our pipes open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


async def _read_bounded(stream: asyncio.StreamReader | None, on_excess: Callable[[], None] = lambda: None) -> bytes:
    """Read a stream to its end, and return as much as the limit and one byte; the rest is thrown away."""
    content = bytearray()
    while stream and (part := await stream.read(2**16)):
        content += part[: _MOST_BYTES + 1 - len(content)]
        if len(content) > _MOST_BYTES:
            on_excess()
    return bytes(content)


def _environment(plugin: Object, cluster: Object) -> dict[str, str]:
    spec: Object = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        shown = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
        spec["cluster"] = _with_authority({key: cluster[key] for key in shown if key in cluster}, cluster)
        for extension in cluster.get("extensions") or ():
            if extension.get("name") == _FOR_THE_PLUGIN:
                spec["cluster"]["config"] = extension.get("extension")
    info = {"apiVersion": plugin["apiVersion"], "kind": "ExecCredential", "spec": spec}
    own = {str(entry["name"]): str(entry["value"]) for entry in plugin.get("env") or ()}
    return {**os.environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _with_authority(info: Object, cluster: Object) -> Object:
    """Add the content of the authority's file: a plugin gets the authority itself."""
    path = cluster.get("certificate-authority")
    if not path:
        return info
    try:
        return info | {"certificate-authority-data": base64.b64encode(Path(path).read_bytes()).decode()}
    except OSError as error:
        raise ConfigException(f"exec: failed to load CA bundle {path}: {error.strerror}") from error


def _decoded(stdout: bytes, version: str) -> ExecCredential:
    try:
        answer = json.loads(stdout)
        status = answer["status"]
        if answer["apiVersion"] != version or answer["kind"] != "ExecCredential":
            raise ConfigException(f"exec: the plugin answered with {answer['apiVersion']} {answer['kind']}")
        expires = status.get("expirationTimestamp")
        expires_at = datetime.fromisoformat(expires) if expires else None
        if expires_at and expires_at.tzinfo is None:  # Go refuses it, too
            raise ConfigException(f"exec: the plugin's expirationTimestamp {expires} has no time zone")
        if expires_at and not _FIRST_YEAR <= expires_at.year <= _LAST_YEAR:  # nobody can count from the calendar's ends
            raise ConfigException(f"exec: the plugin's expirationTimestamp {expires} makes no sense")
        return ExecCredential(_user(status), expires_at)
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
