"""A machine that is a node by the systemd service, as its root and the cluster's administrator see it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster.command import run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.node_view import NodeView
from tests.cluster.waiting import eventually
from tests.systemd.machine import Machine
from tests.systemd.vm import VirtualMachine

COMMAND = "/opt/fake-kubelet/bin/fake-kubelet"
UNIT = "fake-kubelet"


class Member(NodeView):
    """The machine and its Node."""

    def __init__(self, machine: Machine | VirtualMachine, plane: ControlPlane) -> None:
        super().__init__(plane, machine.name)
        self.machine = machine

    def install_and_join(self, *flags: str) -> str:
        """What the one line prints that makes the machine a node."""
        told = self.machine.run(
            *(COMMAND, "install", "--join", self.plane.endpoint, "--token", BOOTSTRAP_TOKEN),
            *("--discovery-token-ca-cert-hash", self.plane.pin, *flags),
        )
        self.wait_until_ready()
        return told

    def wait_until_ready(self) -> dict[str, Any]:
        """Until the Node is Ready and the unit active; in this order, because asking a machine keeps it busy."""
        node = super().wait_until_ready()
        eventually(lambda: self.show("ActiveState") == "active", every=0.5)
        return node

    def is_shutting_down(self) -> bool:
        """Whether the Node is said to go, in a kubelet's words."""
        ready = self.condition("Ready")
        words = (ready["status"], ready["reason"], ready["message"])
        return words == ("False", "KubeletNotReady", "node is shutting down")

    def has_gone(self) -> bool:
        """Whether that was its last word: if it is off for long, the controller-manager has one of its own."""
        return self.is_shutting_down() or self.condition("Ready")["reason"] == "NodeStatusUnknown"

    def event_messages(self, reason: str) -> list[str]:
        """What the node's events of a reason say."""
        return [event["message"] for event in self.events(reason=reason)]

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
        # Not _COMM, which journald looks up in /proc: it is too late for the last lines of a process that ends quickly.
        text = run(["journalctl", "--directory", str(place), "--output=json", "--all", f"SYSLOG_IDENTIFIER={UNIT}"])
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
