"""Anything in every place of a request, at all three ports: never a 5xx, never a traceback, and the heart beats on."""

import os
import random
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cluster import audit
from tests.cluster.agent_process import AgentProcess
from tests.cluster.api import NODES, PODS, Identity
from tests.cluster.control_plane import ControlPlane
from tests.cluster.identities import account, accounts
from tests.cluster.malformed import stranger
from tests.cluster.port_fuzz import MARK, Door, Findings, Fuzzer, fuzz
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.anyio

_COUNT = int(os.environ.get("FUZZ_REQUESTS", "1000"))  # `make fuzz` has 20000
_SEED = int(os.environ.get("FUZZ_SEED", "15"))  # 0 for another one each time
_LEASE_SECONDS = 20  # renewed every 5
_MOST_LINES = 100  # of a log that says something once a minute
_POD = ("default", f"port-fuzz-{secrets.token_hex(3)}", "c")


@dataclass(frozen=True)
class Node:
    """A node as kubeadm sets one up, with a pod on it, and with all its ports open."""

    name: str
    agent: AgentProcess
    doors: tuple[Door, ...]
    admin: Identity


@pytest.fixture
def node(control_plane: ControlPlane, node_name: str, tmp_path: Path) -> Iterator[Node]:
    port, read_only, healthz = free_ports(3)
    admin = Identity("admin", (control_plane.admin_cert, control_plane.admin_key))
    accounts(control_plane)
    tokens = [account(control_plane, name).headers["Authorization"].split()[1] for name in ("proxy", "log", "stats")]
    _host(tmp_path)
    agent = AgentProcess(
        *(f"--kubeconfig={control_plane.node_kubeconfig(node_name)}", f"--hostname-override={node_name}"),
        *("--address=127.0.0.1", f"--port={port}", f"--read-only-port={read_only}", f"--healthz-port={healthz}"),
        *(f"--cert-dir={tmp_path / 'pki'}", f"--host-root={tmp_path / 'host'}"),
        *("--anonymous-auth=false", f"--client-ca-file={control_plane.ca_file}"),
        *("--authentication-token-webhook=true", "--authorization-mode=Webhook"),
        f"--node-lease-duration-seconds={_LEASE_SECONDS}",
        log=tmp_path / "agent.log",
    )
    agent.start()
    doors = (
        Door("10250 with tokens", port, stranger(), (*tokens, *tokens, "garbage"), share=0.25),
        Door("10250 with a certificate", port, stranger(*admin.certificate or ()), share=0.35),
        Door("10250 without TLS", port, share=0.05),
        Door("10255", read_only, share=0.2),
        Door("10248", healthz, share=0.15),
    )
    try:
        eventually(lambda: admin.ask(port, "GET", "/healthz").status == 200)
        eventually(lambda: control_plane.get("serviceaccount", "default", "default"))
        control_plane.api.create(PODS, _pod(node_name))
        eventually(lambda: control_plane.get("pod", _POD[1], "default")["status"]["phase"] == "Running")
        yield Node(node_name, agent, doors, admin)
    finally:
        control_plane.api.delete(f"{PODS}/{_POD[1]}?gracePeriodSeconds=0")
        agent.stop()
        control_plane.api.delete(f"{NODES}/{node_name}")


def _host(folder: Path) -> None:
    """A root of a host whose logs are as odd as the requests for them."""
    logs = folder / "host" / "var" / "log"
    logs.mkdir(parents=True)
    for name in ("proc", "sys", "etc"):
        (folder / "host" / name).symlink_to(f"/{name}")
    (logs / "a.log").write_text("a line\n" * 1000)
    (logs / "a").mkdir()
    (logs / "loop").symlink_to("loop")
    (logs / "zero").symlink_to("/dev/zero")
    os.mkfifo(logs / "pipe")
    odd = os.fsdecode(os.fsencode(logs) + b"/x\xff")
    Path(odd).write_text("odd")
    os.utime(odd, (0, -(2**33)))


def _pod(node_name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _POD[1], "namespace": _POD[0]},
        "spec": {
            "nodeName": node_name,
            "automountServiceAccountToken": False,
            "containers": [{"name": _POD[2], "image": "nginx"}],
        },
    }


@pytest.mark.timeout(600 + _COUNT)
async def test_no_request_is_a_failure_and_none_prevents_a_renewal(
    control_plane: ControlPlane, node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = _SEED or random.SystemRandom().randrange(2**32)
    for path in ("/stats/summary", "/metrics", "/metrics/cadvisor", "/metrics/resource", "/pods", "/logs/"):
        assert node.admin.ask(node.doors[0].port, "GET", path).status == 200

    def renewals() -> list[datetime]:
        return audit.renewals(audit.requests_of(node.name, control_plane.audit_log))

    began, fuzzer, found = datetime.now(UTC), Fuzzer(seed, pod=_POD), {door.name: Findings() for door in node.doors}
    for door in node.doors:
        await fuzz(door, round(_COUNT * door.share), fuzzer, found[door.name])
    with capsys.disabled():
        print(f"\nseed {seed}: {sum(one.sent for one in found.values())} requests")
        for name, one in found.items():
            print(f"  {name}: {dict(one.statuses)}, of these meant so: {dict(one.deliberate)}")
    assert [failure for one in found.values() for failure in one.failures] == []
    # Who speaks no TLS where TLS is spoken may be cut off.
    assert [data for name, one in found.items() for data in one.unanswered if "without" not in name] == []
    eventually(lambda: len([one for one in renewals() if one > began]) >= 2)
    assert all((later - earlier).total_seconds() < _LEASE_SECONDS for earlier, later in pairwise(renewals()))
    assert node.admin.ask(node.doors[0].port, "GET", "/pods").status == 200
    _check(node.agent.log_text())
    assert node.agent.stop() == 0


def _check(log: str) -> None:
    """Nothing of a request stands in it raw, and there is little of it."""
    assert "Traceback" not in log
    assert "Unable to answer a request" not in log
    assert not re.search(r"[^\n\t\x20-\x7e]", log)
    assert not re.search(rf"^\W*{MARK}", log, re.MULTILINE)
    assert len(log.splitlines()) <= _MOST_LINES
