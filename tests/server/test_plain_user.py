"""A node whose credentials may do what a node does, and may not ask about callers."""

import secrets

from tests.cluster.api import NOBODY, Identity, bearer
from tests.cluster.node_view import NodeView
from tests.cluster.ports import free_ports
from tests.cluster.waiting import eventually

_NODE = "nodes,nodes/status,pods,pods/status,events,leases.coordination.k8s.io,csinodes.storage.k8s.io"


def test_callers_are_refused_as_by_a_kubelet_and_the_missing_rights_are_reported_once(
    control_plane, start_kubelet, start_agent, node_name, tmp_path
) -> None:
    user, role = f"{node_name}-user", f"plain-{secrets.token_hex(3)}"
    control_plane.kubectl("create", "clusterrole", role, "--verb=*", f"--resource={_NODE}")
    control_plane.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", f"--user={user}")
    kubeconfig, (port,) = control_plane.user_kubeconfig(user, user), free_ports(1)
    kubelet, view = start_kubelet(f"{node_name}-k", kubeconfig=kubeconfig), NodeView(control_plane, node_name)
    agent = start_agent(
        *(f"--kubeconfig={kubeconfig}", f"--hostname-override={node_name}", "--healthz-port=0"),
        *("--address=127.0.0.1", f"--port={port}", f"--cert-dir={tmp_path / 'pki'}"),
    )
    try:
        view.wait_until_ready()
        callers = (
            NOBODY,
            bearer("a token", "garbage"),
            Identity("admin", (control_plane.admin_cert, control_plane.admin_key)),
        )
        for _ in range(2):
            answers = [
                [eventually(lambda at=at, who=who: who.ask(at, "GET", "/pods")) for who in callers]
                for at in (kubelet.port, port)
            ]
            theirs, ours = ([(answer.status, answer.body) for answer in side] for side in answers)
            assert ours == theirs
            assert [status for status, _ in ours] == [401, 401, 500]
        lines = [line for line in agent.log_text().splitlines() if "may not ask the API server about callers" in line]
        assert [("tokenreviews" in line, "subjectaccessreviews" in line) for line in lines] == [
            (True, False),
            (False, True),
        ]
        assert all("system:auth-delegator" in line for line in lines)
    finally:
        agent.stop()
        for name in (node_name, f"{node_name}-k"):
            control_plane.api.delete(f"/api/v1/nodes/{name}")
