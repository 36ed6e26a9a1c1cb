"""Exec plugins: a command that knows the credentials, run with a deadline."""

import asyncio
import base64
import json
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from agent.adapters.lazy_kubernetes import ConfigException
from agent.core.model import Object

DEADLINE_SECONDS = 30.0
_FOR_THE_PLUGIN = "client.authentication.k8s.io/exec"  # the name of its own settings among those of a cluster
_MOST_WORDS = 500
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
    if "/" in command:
        command = str(folder / command)
    argv = [command, *map(str, plugin.get("args") or ())]
    try:
        async with asyncio.timeout(deadline_seconds):
            return _grant(await _said(argv, await asyncio.to_thread(_environment, plugin, cluster), plugin), version)
    except TimeoutError as error:
        raise ConfigException(f"exec: {command} did not answer within {deadline_seconds:g}s") from error


async def _said(argv: list[str], environment: dict[str, str], plugin: Object) -> bytes:
    pipe, silence = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*argv, env=environment, stdin=silence, stdout=pipe, stderr=pipe)
    except OSError as error:
        hint = f"; {plugin['installHint']}" if plugin.get("installHint") else ""
        raise ConfigException(f"exec: {argv[0]}: {error.strerror}{hint}") from error
    try:
        answer, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = complaint.decode(errors="replace").strip()[:_MOST_WORDS]
        raise ConfigException(f"exec: {argv[0]} ended with {process.returncode}: {words}")
    return answer


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
        return Grant(_user(status), expires_at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
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
