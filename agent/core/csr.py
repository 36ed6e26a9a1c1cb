"""Certificates of a node: what is asked for, what the answer means, and when to ask again."""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address

from agent.core.model import Object
from agent.core.x509 import Certificate, read_certificates

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
_GROUP = "system:nodes"


class Refused(ValueError):
    """A certificate that will not come; the message says why, in kubelet's words."""


@dataclass(frozen=True, slots=True)
class Template:
    """Whom a certificate shall be about, and what it shall be good for."""

    signer: str
    common_name: str
    organizations: tuple[str, ...] = (_GROUP,)
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()


def client_template(node_name: str) -> Template:
    """What a node shows to the API server."""
    return Template(CLIENT_SIGNER, f"system:node:{node_name}")


def serving_template(node_name: str, addresses: Iterable[Object]) -> Template | None:
    """What a node shows to its callers; None while it has no IP address, as kubelet waits for one."""
    dns_names, ips = set(), set()
    for address in addresses:
        kind, text = address["type"], address["address"]
        if kind in {"InternalIP", "ExternalIP"} or (kind == "Hostname" and _is_ip(text)):
            ips.add(str(ip_address(text)))
        elif text:
            dns_names.add(text)
    if not ips:
        return None
    return Template(
        SERVING_SIGNER,
        f"system:node:{node_name}",
        dns_names=tuple(sorted(dns_names)),
        ip_addresses=tuple(sorted(ips)),
    )


def usages(signer: str, *, is_rsa: bool) -> list[str]:
    """What the key may be used for; the approver in the cluster wants exactly these."""
    purpose = "server auth" if signer == SERVING_SIGNER else "client auth"
    return ["digital signature", purpose, *(["key encipherment"] if is_rsa else [])]


def digested_name(public_key: bytes, template: Template, purposes: Sequence[str]) -> str:
    """A name that the same key and the same wishes always lead to, so that a restart finds its own request."""
    digest = hashlib.new("sha512_256")  # kubelet v1.36: bootstrap.digestedName
    words = (template.common_name, *template.organizations, *purposes)
    for item in (public_key, *(word.encode() for word in words)):
        digest.update(_unpadded(item) + b"|")
    return f"node-csr-{_unpadded(digest.digest()).decode()}"


def signing_request(csr_pem: str, template: Template, purposes: Sequence[str], *, name: str = "") -> Object:
    """The object to create; without a name the API server gives it one."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name} if name else {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(csr_pem.encode()).decode(),
            "usages": list(purposes),
            "signerName": template.signer,
        },
    }


def issued(request: Object, uid: str) -> str | None:
    """The certificate that came of a request, None while it is open; Refused if none will come."""
    name, status = request["metadata"]["name"], request.get("status") or {}
    if request["metadata"]["uid"] != uid:
        raise Refused(f'csr "{name}" changed UIDs')
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    for kind, words in (("Denied", "is denied"), ("Failed", "failed")):
        if kind in conditions:
            reason, message = (conditions[kind].get(key, "") for key in ("reason", "message"))
            raise Refused(f"certificate signing request {words}, reason: {reason}, message: {message}")
    if "Approved" in conditions and status.get("certificate"):
        return base64.b64decode(status["certificate"]).decode("ascii")
    return None


def overdue(request: Object, now: datetime) -> str:
    """Why the certificate that came of an old request is of no use; empty while there is none, or if it is good."""
    encoded = (request.get("status") or {}).get("certificate")
    if not encoded:
        return ""
    try:
        chain = read_certificates(base64.b64decode(encoded).decode("ascii"))
    except ValueError as error:
        return f"error parsing signed certificate for CSR: {error}"
    over = [certificate.not_after for certificate in chain if certificate.is_over(now)]
    return f"one of the certificates for the CSR has expired: {over[0]}" if over else ""


def satisfies(certificate: Certificate, template: Template) -> bool:
    """Whether a certificate has all that is wanted; more does not hurt."""
    return (
        certificate.common_name == template.common_name
        and set(template.organizations) <= set(certificate.organizations)
        and set(template.dns_names) <= set(certificate.dns_names)
        and set(template.ip_addresses) <= set(certificate.ip_addresses)
    )


def is_of_another_node(certificate: Certificate, node_name: str) -> bool:
    """Whether a certificate speaks for a node that is not this one."""
    name = certificate.common_name
    return name.startswith("system:node:") and name != f"system:node:{node_name}"


def rotation_deadline(certificate: Certificate, rand: float) -> datetime:
    """When to ask for the next one: after 70 to 90 % of its life, by chance, so that nodes do not ask together."""
    life = certificate.not_after - certificate.not_before
    return certificate.not_before + life * (0.7 + 0.2 * rand)


def _unpadded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
