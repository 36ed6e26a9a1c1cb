"""CertificateSigningRequests of a node: what it requests, what the answer means, and when it requests again."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv6Address, ip_address
from itertools import islice

from agent.core.model import NodeAddress, Object
from agent.core.x509 import Certificate, read_certificates

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
_GROUP = "system:nodes"
_NODE_USER = "system:node:"
_IP_KINDS, _DNS_KINDS = {"InternalIP", "ExternalIP"}, {"InternalDNS", "ExternalDNS"}
_DNS_NAME = re.compile(r"[A-Za-z0-9*_.-]{1,253}")  # a certificate has room for nothing else
_LONGEST_IP = 64
_MOST_ADDRESSES = 1000  # with more, no API server would store the request
_LONGEST_CHAIN = 2**18
_MOST_WORDS = 500


class Refused(ValueError):
    """The cluster issues no certificate for a CSR; the message has kubelet's wording."""


@dataclass(frozen=True, slots=True)
class Template:
    """The subject and the signer of a certificate that is requested."""

    signer: str
    common_name: str
    organizations: tuple[str, ...] = (_GROUP,)
    dns_names: tuple[str, ...] = ()
    ip_addresses: tuple[str, ...] = ()


def client_template(node_name: str) -> Template:
    """Return the template of the client certificate, by which a node identifies itself to the API server."""
    return Template(CLIENT_SIGNER, f"{_NODE_USER}{node_name}")


def serving_template(node_name: str, addresses: Iterable[NodeAddress]) -> Template | None:
    """Return the template of the serving certificate; None while the node has no IP address, as kubelet waits for one.

    Others may write the Node's addresses: those that no certificate can have are left out.
    """
    dns_names, ips = set(), set()
    for address in islice(addresses, _MOST_ADDRESSES):  # kubelet v1.36: addressesToHostnamesAndIPs
        kind, text = address.get("type"), address.get("address", "")
        ip = _ip(text) if kind in _IP_KINDS or kind == "Hostname" else ""
        if ip:
            ips.add(ip)
        elif (kind in _DNS_KINDS or kind == "Hostname") and _DNS_NAME.fullmatch(text):
            dns_names.add(text)
    if not ips:
        return None
    return Template(
        SERVING_SIGNER,
        f"{_NODE_USER}{node_name}",
        dns_names=tuple(sorted(dns_names)),
        ip_addresses=tuple(sorted(ips)),
    )


def usages(signer: str, *, is_rsa: bool) -> list[str]:
    """Return the usages of the key; the approver in the cluster accepts exactly these."""
    purpose = "server auth" if signer == SERVING_SIGNER else "client auth"
    return ["digital signature", purpose, *(["key encipherment"] if is_rsa else [])]


def digested_name(public_key: bytes, template: Template, purposes: Sequence[str]) -> str:
    """Return a name that is the same for the same key and template, so that a restart finds its own request."""
    digest = hashlib.new("sha512_256")  # kubelet v1.36: bootstrap.digestedName
    words = (template.common_name, *template.organizations, *purposes)
    for item in (public_key, *(word.encode() for word in words)):
        digest.update(_unpadded(item) + b"|")
    return f"node-csr-{_unpadded(digest.digest()).decode()}"


def signing_request(csr_pem: str, template: Template, purposes: Sequence[str], *, name: str = "") -> Object:
    """Return the object to create; without a name the API server generates one."""
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
    """Return the certificate of a request, None while it is pending; raise Refused if it was denied or has failed."""
    name, status = request["metadata"]["name"], request.get("status") or {}
    if request["metadata"]["uid"] != uid:
        raise Refused(f'csr "{name}" changed UIDs')
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    for kind, words in (("Denied", "is denied"), ("Failed", "failed")):
        if kind in conditions:
            reason, message = (conditions[kind].get(key, "")[:_MOST_WORDS] for key in ("reason", "message"))
            raise Refused(f"certificate signing request {words}, reason: {reason}, message: {message}")
    if "Approved" in conditions and status.get("certificate"):
        return _decoded(status["certificate"])
    return None


def mismatch(pem: str, template: Template, public_key: bytes) -> str:
    """Return why a certificate is not the requested one; empty if it is."""
    if len(pem) > _LONGEST_CHAIN:
        return f"the signed certificate has {len(pem)} letters, and {_LONGEST_CHAIN} are enough"
    try:
        leaf = read_certificates(pem)[0]
    except ValueError as error:
        return f"error parsing signed certificate for CSR: {error}"
    if leaf.public_key != public_key:
        return "the signed certificate is for another key"
    if not satisfies(leaf, template):
        return f"the signed certificate, for {leaf.common_name[:_MOST_WORDS]!r}, lacks some of what was asked for"
    return ""


def overdue(request: Object, now: datetime) -> str:
    """Return why the certificate of an old request has expired; empty if it has not, or there is none."""
    try:
        chain = read_certificates(_decoded((request.get("status") or {}).get("certificate") or ""))
    except ValueError:
        return ""  # mismatch() reports it
    over = [certificate.not_after for certificate in chain if certificate.is_over(now)]
    return f"one of the certificates for the CSR has expired: {over[0]}" if over else ""


def satisfies(certificate: Certificate, template: Template) -> bool:
    """Return whether a certificate has everything that the template names; it may have more."""
    return (
        certificate.common_name == template.common_name
        and set(template.organizations) <= set(certificate.organizations)
        and set(template.dns_names) <= set(certificate.dns_names)
        and set(template.ip_addresses) <= set(certificate.ip_addresses)
    )


def node_of(certificate: Certificate) -> str:
    """Return the name of the node that a certificate belongs to; empty if it is not that of a node."""
    name = certificate.common_name
    return name.removeprefix(_NODE_USER) if name.startswith(_NODE_USER) else ""


def is_of_another_node(certificate: Certificate, node_name: str) -> bool:
    """Return whether a certificate is that of another node."""
    return node_of(certificate) not in {"", node_name}


def rotation_deadline(certificate: Certificate, rand: float) -> datetime:
    """Return when to request the next one: after 70 to 90 % of its life, at random, so that nodes spread."""
    life = certificate.not_after - certificate.not_before
    return certificate.not_before + life * (0.7 + 0.2 * rand)


def _unpadded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def decoded_request(request: Object) -> str:
    """Return the PEM of a request that the API server has stored."""
    return _decoded(request["spec"]["request"])


def _decoded(encoded: str) -> str:
    """Decode PEM in base64; a text that is no base64 stays as it is."""
    try:
        return base64.b64decode("".join(encoded.split()), validate=True).decode("ascii", "replace")
    except ValueError:
        return encoded


def _ip(text: str) -> str:
    """Return an IP address as Go's ParseIPSloppy reads and writes it; empty if it is none, or has a zone."""
    if len(text) > _LONGEST_IP or "%" in text:
        return ""
    if ":" not in text:
        text = ".".join(part.lstrip("0") or part[:1] for part in text.split("."))
    try:
        ip = ip_address(text)
    except ValueError:
        return ""
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return str(mapped or ip)
