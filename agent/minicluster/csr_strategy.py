"""Certificate signing requests: filed, approved and signed in three separate writes."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from agent.core.model import Object
from agent.core.times import timestamp
from agent.minicluster.status_errors import StatusCause
from agent.minicluster.strategy import AGE, NAME, STATUS_VERBS, Column, Resource, Strategy, human_age, human_duration

if TYPE_CHECKING:
    from datetime import datetime

ADMIN = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
_DECISIONS = {"Approved", "Denied"}


def _decode(request: Object) -> None:
    request.setdefault("spec", {})
    request.setdefault("status", {})


def _prepare_create(request: Object) -> None:
    request["spec"] |= ADMIN  # everyone here is the administrator
    request["status"] = {}


def _prepare_update(new: Object, old: Object) -> None:
    new["spec"], new["status"] = old["spec"], old["status"]


def _approve(new: Object, old: Object) -> None:
    """Only the decision may change; its times are filled in."""
    now = timestamp(datetime.now(UTC))
    conditions = new["status"].get("conditions") or []
    for condition in conditions:
        condition.setdefault("lastUpdateTime", now)
        condition.setdefault("lastTransitionTime", now)
    new["spec"] = old["spec"]
    new["status"] = {key: value for key, value in old["status"].items() if key != "conditions"}
    if conditions:
        new["status"]["conditions"] = conditions


def _sign(new: Object, old: Object) -> None:
    """The certificate may change, the decision may not."""
    decided = [condition for condition in old["status"].get("conditions") or [] if condition["type"] in _DECISIONS]
    others = [condition for condition in new["status"].get("conditions") or [] if condition["type"] not in _DECISIONS]
    new["spec"] = old["spec"]
    new["status"] = {key: value for key, value in new["status"].items() if key != "conditions"}
    if decided + others:
        new["status"]["conditions"] = decided + others


def _validate(request: Object) -> list[StatusCause]:
    spec, causes = request["spec"], []
    if not _is_pem_request(spec.get("request")):
        rule = "PEM block type must be CERTIFICATE REQUEST"
        causes.append(StatusCause.invalid("spec.request", spec.get("request"), rule))
    causes += [StatusCause.required(f"spec.{field}") for field in ("usages", "signerName") if not spec.get(field)]
    return causes


def _is_pem_request(text: Any) -> bool:
    try:
        return base64.b64decode(text or "", validate=True).lstrip().startswith(b"-----BEGIN CERTIFICATE REQUEST-----")
    except (binascii.Error, TypeError, ValueError):
        return False


def _condition(request: Object) -> str:
    types = {condition["type"] for condition in request["status"].get("conditions") or []}
    words = ["Denied"] if "Denied" in types else ["Approved"] if "Approved" in types else ["Pending"]
    if "Failed" in types:
        words.append("Failed")
    if request["status"].get("certificate"):
        words.append("Issued")
    return ",".join(words)


def _cells(request: Object, now: datetime) -> list[Any]:
    metadata, spec = request["metadata"], request["spec"]
    seconds = spec.get("expirationSeconds")
    duration = "<none>" if seconds is None else human_duration(timedelta(seconds=seconds))
    age = human_age(metadata["creationTimestamp"], now)
    return [metadata["name"], age, spec.get("signerName"), spec.get("username"), duration, _condition(request)]


SIGNING_REQUESTS = Resource(
    group="certificates.k8s.io",
    plural="certificatesigningrequests",
    singular="certificatesigningrequest",
    kind="CertificateSigningRequest",
    namespaced=False,
    short_names=("csr",),
    subresources={"approval": STATUS_VERBS, "status": STATUS_VERBS},
    strategy=Strategy(
        decode=_decode,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        subresources={"approval": _approve, "status": _sign},
        validate=_validate,
        any_name=True,  # kubernetes v1.36: ValidateCertificateRequestName, for the digests in kubelet's names
    ),
    field_labels={"spec.signerName": lambda request: str(request["spec"].get("signerName", ""))},
    generic_field_labels=False,
    columns=(
        NAME,
        AGE,
        Column(name="SignerName", description="Who is asked to sign."),
        Column(name="Requestor", description="Who asks."),
        Column(name="RequestedDuration", description="How long the certificate shall be valid."),
        Column(name="Condition", description="Pending, approved, denied, issued."),
    ),
    cells=_cells,
    bookmark={"spec": {"request": None, "signerName": ""}, "status": {}},
)
