"""Serving certificates that the cluster signs, on a real control plane."""

from agent.core.x509 import read_certificates
from tests.cluster.waiting import eventually


def test_a_serving_certificate_is_asked_for_with_the_nodes_addresses_and_kept_when_approved(machine):
    machine.start("--rotate-certificates", "--rotate-server-certificates")
    (request,) = eventually(machine.serving_requests)
    assert request["spec"]["usages"] == ["digital signature", "server auth"]
    assert request["spec"]["username"] == f"system:node:{machine.name}"
    machine.approve(request)
    pem = machine.pki / "kubelet-server-current.pem"
    eventually(pem.exists)
    certificate = read_certificates(pem.read_text())[0]
    assert certificate.common_name == f"system:node:{machine.name}"
    addresses = machine.plane.get("node", machine.name)["status"]["addresses"]
    assert certificate.dns_names == (machine.name,)
    assert set(certificate.ip_addresses) == {a["address"] for a in addresses if a["type"] == "InternalIP"}
    assert pem.stat().st_mode & 0o777 == 0o600
    eventually(lambda: "Loaded serving certificate" in machine.log_text())
    assert machine.refusals() == []
