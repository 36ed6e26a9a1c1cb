"""What a kubelet says about the use of its machine, taken apart."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES, Identity
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import free_ports
from tests.cluster.real_kubelet import RealKubelet
from tests.cluster.waiting import eventually

OURS = "figures-ours"
# What a kubelet tells and we do not
LACKING = {
    "container_file_descriptors": "counted in /proc of every process: 14 ms of CPU for 1900 of them, and only for root",
    "container_sockets": "the same",
}


class Number(NamedTuple):
    """One line of a page for Prometheus."""

    value: float
    timestamp_ms: int | None


class Page(NamedTuple):
    """A page for Prometheus."""

    families: Mapping[str, tuple[str, str]]  # name → type and help
    numbers: Mapping[str, Number]  # name{labels} → value


class Served:
    """One kubelet's port, asked by the administrator."""

    def __init__(self, control_plane: ControlPlane, pid: int, port: int) -> None:
        self._asking = Identity("admin", (control_plane.admin_cert, control_plane.admin_key))
        self.pid, self.port = pid, port

    def summary(self, query: str = "") -> dict[str, Any]:
        """/stats/summary."""
        found: dict[str, Any] = json.loads(self._get(f"/stats/summary{query}"))
        return found

    def page(self, path: str) -> Page:
        """A page for Prometheus."""
        return parsed(self._get(path))

    def _get(self, path: str) -> str:
        answer = self._asking.ask(self.port, "GET", path)
        assert answer.status == 200, answer
        return answer.body.decode()


@contextmanager
def side_by_side(control_plane: ControlPlane, folder: Path, *more: str) -> Iterator[tuple[Served, Served]]:
    """A kubelet and fake-kubelet with the same settings on one machine, but for `more` flags of ours.

    They are there once both have figures to tell.
    """
    kubelet, port, name = RealKubelet(control_plane, "figures-kubelet", folder / "k"), free_ports(1)[0], OURS
    own = {"hostname-override": name, "kubeconfig": control_plane.node_kubeconfig(name), "cert-dir": folder / "pki"}
    flags = own | {"port": port, "healthz-port": 0}
    arguments = [*kubelet.arguments, *(f"--{flag}={value}" for flag, value in flags.items()), *more]
    agent = AgentProcess(*arguments, log=folder / "agent.log")
    with ExitStack() as running:
        for node_name in (kubelet.node_name, name):
            running.callback(control_plane.api.delete, f"{NODES}/{node_name}")
        running.enter_context(kubelet)
        running.callback(agent.stop)
        agent.start()
        both = Served(control_plane, kubelet.pid, kubelet.port), Served(control_plane, agent.pid, port)
        for served in both:
            eventually(served.summary)
        yield both


def parsed(text: str) -> Page:
    """The text of a page."""
    helps, types = (dict(re.findall(rf"^# {word} (\S+) (.*)$", text, re.MULTILINE)) for word in ("HELP", "TYPE"))
    lines = re.findall(r"^([a-z_]\w*(?:\{.*\})?) (\S+)(?: (\d+))?$", text, re.MULTILINE)
    numbers = {name: Number(float(value), int(at) if at else None) for name, value, at in lines}
    return Page({name: (types[name], said) for name, said in helps.items()}, numbers)


def shape(value: Any) -> Any:
    """Keys and types; names are the same, too, and a whole number may stand for a float."""
    if isinstance(value, dict):
        return {key: item if key == "name" else shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((shape(item) for item in value), key=str)
    return "number" if isinstance(value, int | float) else type(value).__name__
