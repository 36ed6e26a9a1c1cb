"""A machine that is a node by the systemd service, as its root and the cluster's administrator see it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.waiting import eventually
from tests.join.test_join import pin
from tests.systemd.machine import Machine
from tests.systemd.vm import VirtualMachine

COMMAND = "/opt/fake-kubelet/bin/fake-kubelet"
UNIT = "fake-kubelet"


class Member:
    """The machine and its Node."""

    def __init__(self, machine: Machine | VirtualMachine, plane: ControlPlane, *, patience: float = 60.0) -> None:
        self.machine, self.plane, self._patience = machine, plane, patience

    def install_and_join(self, *flags: str) -> str:
        """What the one line prints that makes the machine a node."""
        server = self.plane.url.removeprefix("https://")
        told = self.machine.run(
            *(COMMAND, "install", "--join", server, "--token", BOOTSTRAP_TOKEN),
            *("--discovery-token-ca-cert-hash", pin(self.plane), *flags),
        )
        self.wait_until_ready()
        return told

    def node(self) -> dict[str, Any]:
        return self.plane.get("node", self.machine.name)

    def ready(self) -> dict[str, Any]:
        """The Ready condition."""
        conditions: list[dict[str, Any]] = self.node()["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == "Ready")

    def wait_until_ready(self) -> None:
        eventually(lambda: self.show("ActiveState") == "active", within=self._patience)
        eventually(lambda: self.ready()["status"] == "True", within=self._patience)

    def event_messages(self, reason: str) -> list[str]:
        """What the node's events of a reason say."""
        selector = f"involvedObject.name={self.machine.name},reason={reason}"
        found = json.loads(self.plane.kubectl("get", "events", "--field-selector", selector, "--output=json"))
        return [event["message"] for event in found["items"]]

    def show(self, name: str) -> str:
        """A property of the unit."""
        return self.machine.run("systemctl", "show", "--value", "--property", name, UNIT).strip()

    def systemctl(self, *words: str) -> str:
        return self.machine.run("systemctl", *words, UNIT)

    def pid(self) -> int:
        return int(self.show("MainPID"))

    def journal(self) -> list[dict[str, Any]]:
        """What the daemon wrote to the journal, in all boots; readable while the machine is off, too."""
        place = self.machine.root / "var/log/journal"
        text = run(["journalctl", "--directory", str(place), "--output=json", "--all", f"_COMM={UNIT}"])
        return [json.loads(line) for line in text.splitlines()]

    def messages(self) -> str:
        """The same as text."""
        return "\n".join(str(entry["MESSAGE"]) for entry in self.journal())

    @contextmanager
    def drop_in(self, *lines: str) -> Iterator[None]:
        """The unit with other settings, until the end of the block."""
        path = f"/etc/systemd/system/{UNIT}.service.d/test.conf"
        self.machine.write(path, "\n".join(["[Service]", *lines, ""]))
        self.machine.run("systemctl", "daemon-reload")
        try:
            yield
        finally:
            self.machine.run("rm", path)
            self.machine.run("systemctl", "daemon-reload")
