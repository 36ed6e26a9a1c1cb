"""`fake-kubelet fleet`, and its commands that look at a running fleet or end it."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent import klog
from agent.adapters.fleet.load import DEFAULT_NAME, fleet_from_flags
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import Effective, from_flags
from agent.adapters.settings.table import FLAGS
from agent.cli.fleet_view import fleet_screen, progress_bar
from agent.core.adoption import AdoptionSelector
from agent.core.config import Config
from agent.core.errors import ConfigError
from agent.core.port_range import PortRange
from agent.ports import StartError

if TYPE_CHECKING:
    from agent.fleet.serving import FleetServing

_QUIET = -10  # a thousand nodes would log thousands of lines at INFO
_Result = TypeVar("_Result")


def run_fleet(values: Mapping[str, Any]) -> None:
    """Run a fleet until a signal."""
    from agent.fleet.app import FleetSettings, serve_fleet  # noqa: PLC0415  the Kubernetes client, for this alone

    effective = _effective(values)
    config, fleet = _set_up(effective), fleet_from_flags(values)
    settings = FleetSettings(
        process=config.process,
        node=config.node,
        fleet=fleet,
        reread=partial(fleet_from_flags, values) if values.get("filename") else None,
        socket=socket_of(fleet.name),
        adopt=AdoptionSelector.parse("--adopt", values["adopt"]) if values.get("adopt") else None,
        serving=_serving(values, effective),
    )
    with fleet_screen() as screen:
        _run(serve_fleet(settings, screen))


def scale_fleet(values: Mapping[str, Any]) -> str:
    """Have the process that runs a fleet scale its groups: GROUP=COUNT. Returns what changed."""
    from agent.fleet.control import ask_scale  # noqa: PLC0415  for this command alone

    if not values["words"]:
        raise ConfigError("fleet scale needs GROUP=COUNT")
    counts = {}
    for word in values["words"]:
        group, equals, count = word.partition("=")
        if not equals or not count.isdecimal():
            raise ConfigError(f'"{word}" is not GROUP=COUNT')
        counts[group] = int(count)
    return _run(ask_scale(socket_of(values.get("name", DEFAULT_NAME)), counts))


def fleet_status(values: Mapping[str, Any]) -> str:
    """Return the fleets of a cluster, or one of them, with a line for each."""
    from agent.fleet.status import read_status  # noqa: PLC0415  for this command alone

    return _run(read_status(_config(values), values.get("name", "")))


def delete_fleet(values: Mapping[str, Any]) -> str:
    """Delete what a fleet has created; return how much that was."""
    from agent.fleet.status import delete_fleet as delete  # noqa: PLC0415  for this command alone

    if len(values["words"]) > 1:
        raise ConfigError("fleet delete takes one name")
    name = values["words"][0] if values["words"] else values.get("name", DEFAULT_NAME)
    with progress_bar(f"Deleting fleet {name}") as advance:
        return _run(delete(_config(values), name, advance))


def socket_of(name: str) -> Path:
    """Return the socket of the process that runs a fleet of this name."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    if folder and Path(folder).is_dir():
        return Path(folder, f"fake-kubelet-fleet-{name}.sock")
    return Path(f"/tmp/fake-kubelet-{os.getuid()}-fleet-{name}.sock")  # noqa: S108  it is made for its owner alone


def _config(values: Mapping[str, Any]) -> Config:
    return _set_up(_effective(values))


def _effective(values: Mapping[str, Any]) -> Effective:
    return from_flags({name: value for name, value in values.items() if name in FLAGS})


def _set_up(settings: Effective) -> Config:
    verbosity = settings.kubelet["logging"]["verbosity"]
    klog.set_up(verbosity or _QUIET, log_format=settings.kubelet["logging"]["format"])
    return build_config(settings)


def _serving(values: Mapping[str, Any], settings: Effective) -> "FleetServing":
    """Return where the kubelet's API is served. Raises ConfigError for what only one node can do."""
    from agent.adapters.settings.zpages import zpages  # noqa: PLC0415  for the program, not for its commands
    from agent.fleet.serving import FleetServing  # noqa: PLC0415  as above

    if settings.kubelet["serverTLSBootstrap"]:
        raise ConfigError("serverTLSBootstrap (--rotate-server-certificates) is for one node; give --tls-cert-file")
    if settings.kubelet["readOnlyPort"]:
        raise ConfigError("readOnlyPort (--read-only-port) is for one node")
    if "port-range" in values and "port" in values:
        raise ConfigError("--port and --port-range do not go together: nodes share a port, or each has its own")
    return FleetServing(
        ports=PortRange.parse("--port-range", values["port-range"]) if "port-range" in values else None,
        insists_on_port="port" in settings.origins,
        stores_certificate="cert-dir" in settings.flags,
        pages=zpages(settings),
    )


def _run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end, on uvloop if that is installed. Raises ConfigError for a StartError."""
    try:
        new_loop = import_module("uvloop").new_event_loop
    except ImportError:
        new_loop = None
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(work)
    except StartError as error:
        raise ConfigError(str(error)) from error


__all__ = ["delete_fleet", "fleet_status", "run_fleet", "scale_fleet", "socket_of"]
