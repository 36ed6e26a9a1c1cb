"""`fake-kubelet config check`: everything that is wrong with the settings on this machine, one line each."""

import errno
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from agent.adapters.host import LinuxHost
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import LENIENT, Effective, from_flags
from agent.adapters.settings.strict import strict_errors
from agent.core.capacity import check_reservations
from agent.core.config import Config, ProcessConfig, Serving
from agent.core.errors import ConfigError
from agent.core.model import HostSnapshot
from agent.core.node_view import format_signal
from agent.core.pressure import signal_observations
from agent.ports import StartError

_BYTES = re.compile(r"[0-9.]+([KMGTP])B")  # what many write for a size, and Kubernetes does not take


@dataclass(slots=True)
class Findings:
    """What the daemon would not start with, or not as its user means it, and what it only logs."""

    node_name: str = ""
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    hints: dict[str, str] = field(default_factory=dict)  # by the error

    def add(self, error: ConfigError | StartError) -> None:
        """Add an error, and its hint if it has one."""
        self.errors.append(str(error))
        if error.hint:
            self.hints[str(error)] = error.hint


async def check(flags: Mapping[str, Any]) -> Findings:
    """Check settings as they are on this machine, with its ports, and with the credentials that they name."""
    findings = Findings()
    try:
        _check_readable(flags.get("config", ""))
        settings = from_flags(flags)
    except ConfigError as error:
        findings.add(error)
        return findings
    findings.errors.extend((*strict_errors(settings), *_node_ip_errors(settings)))
    findings.warnings.extend(_notes(settings))
    try:
        config = build_config(settings)
    except ConfigError as error:
        findings.errors.append(_with_unit_hint(str(error), settings))
        return findings
    findings.node_name = config.node.node_name
    findings.warnings.extend(_open_doors(config.process.serving))
    host = await LinuxHost(config.process.host).snapshot()
    try:
        check_reservations(config.node, host)
    except ConfigError as error:
        findings.add(error)
    findings.errors.extend(_crossed_thresholds(config, host))
    _check_ports(config.process, findings)
    try:
        await _check_credentials(config)
    except (StartError, ConfigError) as error:
        findings.add(error)
    return findings


def _check_readable(path: str) -> None:
    """Raise a ConfigError that names the file once; kubelet's own words, which the daemon has, name it three times."""
    if path:
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise ConfigError(f"cannot read --config {path}: {error.strerror}") from error


def _notes(settings: Effective) -> Iterator[str]:
    """What the daemon logs about settings; what strict decoding rejects is an error here."""
    for note in settings.notes:
        if note.verbosity <= 0 and note.phrase != LENIENT:
            yield f"{note.phrase}: {' '.join(map(str, note.fields.values()))}"


def _node_ip_errors(settings: Effective) -> Iterator[str]:
    for text in filter(None, settings.flags.get("node-ip", "").split(",")):
        try:
            ip_address(text.strip())
        except ValueError:
            yield f'--node-ip: "{text}" is no IP address; the daemon ignores it, as kubelet does'


def _with_unit_hint(message: str, settings: Effective) -> str:
    """Name the file, the field and the unit to use in an error about a size such as 256MB."""
    if not (size := _BYTES.search(message)):
        return message
    path = next((path for path, text in _texts(settings.kubelet) if size[0] in text), "")
    origin = settings.origins.get(path.partition(".")[0], "")
    place = f"{origin}: {path}".removeprefix(": ") if path else message.partition(":")[0]
    return f'{place}: "{size[0]}" is no quantity; use {size[1]} or {size[1]}i for the unit'


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, str):
        yield path, value


def _crossed_thresholds(config: Config, host: HostSnapshot) -> Iterator[str]:
    signals = signal_observations(host)
    for threshold in (*config.node.eviction.hard, *config.node.eviction.soft):
        observed = signals.get(threshold.signal)
        if observed and threshold.is_met(observed, was_due=False):
            available, least = (
                format_signal(threshold.signal, amount)
                for amount in (observed.available, threshold.value.of(observed.capacity))
            )
            yield (
                f"the eviction threshold of {threshold.signal} is crossed right now: {available} is less than {least}; "
                f"the Node would report {threshold.condition}"
            )


def _open_doors(serving: Serving) -> Iterator[str]:
    """Warn about an API that others on the network may use without saying who they are."""
    is_open = serving.enabled and serving.anonymous and not serving.access_reviews
    if is_open and not _is_loopback(serving.address):
        yield (
            f"open to strangers: port {serving.port} on {serving.address} serves pods, metrics and /var/log to whoever "
            "reaches it, as --anonymous-auth=true and --authorization-mode=AlwaysAllow say"
        )


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _check_ports(config: ProcessConfig, findings: Findings) -> None:
    serving = config.serving
    ports = [("healthz-port", serving.healthz_bind_address, serving.healthz_port, findings.warnings)]
    if serving.enabled:
        ports += [
            ("port", serving.address, serving.port, findings.errors),
            ("read-only-port", serving.address, serving.read_only_port, findings.errors),
        ]
    for flag, address, port, messages in ports:
        if port and (reason := _bind_error(address, port)):
            messages.append(f"--{flag}={port} on {address}: {reason}")


def _bind_error(address: str, port: int) -> str | None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that only one who listens is in the way
        try:
            probe.bind((address, port))
        except OSError as error:
            return "already in use" if error.errno == errno.EADDRINUSE else error.strerror
    return None


async def _check_credentials(config: Config) -> None:
    """Raise an error for credentials that the daemon cannot use.

    Without a kubeconfig nothing is checked: the settings may be for another machine.
    """
    if not config.process.kubeconfig:
        return
    from agent.adapters.certificates.bootstrap_files import check_node_name  # noqa: PLC0415  as below
    from agent.adapters.credentials import load_credentials  # noqa: PLC0415  the Kubernetes client

    check_node_name(await load_credentials(_first_kubeconfig(config.process)), config)


def _first_kubeconfig(config: ProcessConfig) -> str:
    """Return the kubeconfig that the daemon would read first."""
    bootstrap = config.certificates.bootstrap_kubeconfig
    try:
        return bootstrap if bootstrap and not Path(config.kubeconfig).exists() else config.kubeconfig
    except OSError as error:
        raise ConfigError(f"cannot read --kubeconfig {config.kubeconfig}: {error.strerror}") from error
