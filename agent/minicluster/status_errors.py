"""The errors of the API server, each of which is a `Status` object on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.minicluster.strategy import Resource

CHANGED_MEANWHILE = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One reason for which the server refuses a field."""

    reason: str
    field: str
    message: str

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> StatusCause:
        """A value that breaks a rule."""
        return cls("FieldValueInvalid", field, f"Invalid value: {_as_json(value)}: {detail}")

    @classmethod
    def required(cls, field: str, detail: str = "") -> StatusCause:
        """A field that may not be left out."""
        return cls("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))

    @classmethod
    def forbidden(cls, field: str, detail: str) -> StatusCause:
        """A change that is not allowed."""
        return cls("FieldValueForbidden", field, f"Forbidden: {detail}")

    @classmethod
    def duplicate(cls, field: str, value: Any, detail: str = "") -> StatusCause:
        """A value that occurs twice."""
        return cls(
            "FieldValueDuplicate", field, f"Duplicate value: {_as_json(value)}" + (f": {detail}" if detail else "")
        )

    @classmethod
    def unsupported(cls, field: str, value: Any, supported: Sequence[str]) -> StatusCause:
        """A value outside an enumeration."""
        values = ", ".join(f'"{name}"' for name in supported)
        return cls("FieldValueNotSupported", field, f"Unsupported value: {_as_json(value)}: supported values: {values}")


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class StatusError(Exception):
    """A request that the API server answers with a failure `Status`."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def body(self) -> dict[str, Any]:
        """Return the `Status` object."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        return status | {"code": self.code}


def details(name: str, group: str, kind: str) -> dict[str, Any]:
    """The `details` of a Status, without the fields that are empty."""
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}


def object_not_found(resource: Resource, name: str) -> StatusError:
    """404: no object of that name."""
    message = f'{resource.key} "{name}" not found'
    return StatusError(404, "NotFound", message, details(name, resource.group, resource.plural))


def no_such_path() -> StatusError:
    """404: no resource behind that path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def not_served_here(key: str) -> StatusError:
    """404: something that a real cluster has, for those who want to create it."""
    message = f"the embedded cluster of fake-kubelet has no {key}; that needs a real API server"
    return StatusError(404, "NotFound", message, {})


def method_not_allowed() -> StatusError:
    """405: the resource is there, the verb is not."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(resource: Resource, name: str) -> StatusError:
    """409: the name is taken."""
    message = f'{resource.key} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details(name, resource.group, resource.plural))


def conflict(resource: Resource, name: str, why: str, *, kind: str = "") -> StatusError:
    """409: the request was made for another state of the object."""
    what = f"{kind}.{resource.group}".rstrip(".") if kind else resource.key
    message = f'Operation cannot be fulfilled on {what} "{name}": {why}'
    return StatusError(409, "Conflict", message, details(name, resource.group, kind or resource.plural))


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    """403: admission says no."""
    message = f'{resource.key} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, details(name, resource.group, resource.plural))


def invalid(kind: str, group: str, name: str, causes: Sequence[StatusCause]) -> StatusError:
    """422: the object breaks its own strategy."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    entries = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {text}'
    return StatusError(422, "Invalid", message, details(name, group, kind) | {"causes": entries})


def bad_request(message: str) -> StatusError:
    """400: the request cannot be understood."""
    return StatusError(400, "BadRequest", message)


def unprocessable() -> StatusError:
    """422: a patch that cannot be applied."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def expired(message: str) -> StatusError:
    """410: the history that was asked for is gone."""
    return StatusError(410, "Expired", message)


def version_too_large(asked: int, current: int) -> StatusError:
    """504: a resourceVersion that has not happened yet."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})
