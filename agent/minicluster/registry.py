"""Reading and writing objects under the API server's strategy."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent.core.model import Object
from agent.core.times import timestamp
from agent.minicluster import status_errors
from agent.minicluster.api_resources import NAMESPACES, UNDELETABLE
from agent.minicluster.objects import decode_object, identified, inherit, ordered, validate_metadata
from agent.minicluster.patches import apply_patch
from agent.minicluster.status_errors import CHANGED_MEANWHILE, StatusCause, StatusError
from agent.minicluster.strategy import DeleteOptions, MalformedError, Resource

if TYPE_CHECKING:
    from agent.minicluster.object_store import ObjectStore

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # upstream's: without vowels there are no words
_STORED_NAMES = {"nodes": "minions"}  # etcd still has the oldest name, and an error message shows it


def _random_suffix() -> str:
    return "".join(secrets.choice(_SUFFIX_LETTERS) for _ in range(5))


class GenericRegistry:
    """Applies the strategy of a resource to a write: defaults, validation, preconditions; then the store."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        now: Callable[[], datetime],
        new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
        new_suffix: Callable[[], str] = _random_suffix,
    ) -> None:
        self.store = store
        self._now = now
        self._new_uid = new_uid
        self._new_suffix = new_suffix

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object, or 404."""
        obj = self.store.get(resource.stored_as, name, namespace)
        if obj is None:
            raise status_errors.object_not_found(resource, name)
        return obj

    def create(self, resource: Resource, namespace: str, body: Any, *, dry_run: bool = False) -> Object:
        """Store a new object."""
        try:
            obj = decode_object(resource, body)
        except MalformedError as error:
            raise _malformed(resource, error) from error
        if "resourceVersion" in obj["metadata"]:
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        return self._create(resource, namespace, obj, dry_run=dry_run)

    def _create(self, resource: Resource, namespace: str, obj: Object, *, dry_run: bool) -> Object:
        self._set_name_and_namespace(resource, namespace, obj["metadata"])
        new = identified(obj, uid=self._new_uid(), now=timestamp(self._now()))
        name = new["metadata"]["name"]
        resource.strategy.prepare_create(new)
        causes = validate_metadata(new, any_name=resource.strategy.any_name) + resource.strategy.validate(new)
        if causes:
            raise status_errors.invalid(resource.kind, resource.group, name, causes)
        if self.store.get(resource.stored_as, name, namespace) is not None:
            raise status_errors.already_exists(resource, name)
        if dry_run:
            del new["metadata"]["resourceVersion"]
            return new
        return self.store.put(resource.stored_as, _ordered(new))

    def _set_name_and_namespace(self, resource: Resource, namespace: str, metadata: Object) -> None:
        """Set name and namespace of a new object. Raises StatusError if it may not have them."""
        if resource.namespaced:
            _set_namespace(metadata, namespace)
            self._check_namespace(resource, metadata, namespace)
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                cause = StatusCause.required("metadata.name", "name or generateName is required")
                raise status_errors.invalid(resource.kind, resource.group, "", [cause])
            metadata["name"] = metadata["generateName"] + self._new_suffix()

    def _check_namespace(self, resource: Resource, metadata: Object, namespace: str) -> None:
        stored = self.store.get(NAMESPACES.key, namespace)
        if stored is None:
            raise status_errors.object_not_found(NAMESPACES, namespace)
        if stored["status"]["phase"] == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise status_errors.forbidden(resource, metadata.get("name", ""), why)

    def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Any,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> tuple[Object, bool]:
        """PUT: store a new state. Returns the object, and whether it was created."""
        try:
            obj = decode_object(resource, body)
        except MalformedError as error:
            raise _malformed(resource, error) from error
        _check_name(obj, name)
        if resource.namespaced:
            _set_namespace(obj["metadata"], namespace)
        old = self.store.get(resource.stored_as, name, namespace)
        if old is None and (subresource or not resource.strategy.create_on_update):
            raise status_errors.object_not_found(resource, name)
        _check_uid(resource, obj, old, namespace, name)
        if old is None:
            obj["metadata"].pop("resourceVersion", None)
            return self._create(resource, namespace, obj, dry_run=dry_run), True
        _check_version(resource, obj, old)
        return self._write(resource, old, obj, subresource, dry_run=dry_run), False

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        content_type: str,
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Object:
        """PATCH: store the patched state."""
        old = self.get(resource, namespace, name)
        wire = resource.to_wire(old) if resource.to_wire else old
        patched = apply_patch(wire, patch, content_type, resource.merge_keys)
        try:
            obj = decode_object(resource, patched)
        except MalformedError as error:
            cause = StatusCause.invalid("patch", str(patch), str(error))
            raise status_errors.invalid("", "", "", [cause]) from error
        _check_name(obj, name)
        if resource.namespaced:
            _set_namespace(obj["metadata"], namespace)
        if obj["metadata"].get("resourceVersion", old["metadata"]["resourceVersion"]) != _version(old):
            raise status_errors.conflict(resource, name, CHANGED_MEANWHILE)
        return self._write(resource, old, obj, subresource, dry_run=dry_run)

    def _write(self, resource: Resource, old: Object, obj: Object, subresource: str, *, dry_run: bool) -> Object:
        """Store a new state of an object, unless nothing changed."""
        name, uid = old["metadata"]["name"], obj["metadata"].get("uid") or old["metadata"]["uid"]
        new = inherit(obj, old)
        strategy = resource.strategy
        prepare = strategy.subresources[subresource] if subresource else strategy.prepare_update
        prepare(new, old)
        causes = validate_metadata(new, any_name=strategy.any_name)
        causes += strategy.validate(new) + strategy.validate_update(new, old)
        if uid != old["metadata"]["uid"]:
            causes.insert(0, StatusCause.invalid("metadata.uid", uid, "field is immutable"))
        if causes:
            raise status_errors.invalid(resource.kind, resource.group, name, causes)
        if new == old or dry_run:
            return old if new == old else new
        if _is_deletable(new):
            return self.store.remove(resource.stored_as, new)
        return self.store.put(resource.stored_as, _ordered(new))

    def delete(
        self, resource: Resource, namespace: str, name: str, options: DeleteOptions | None = None
    ) -> tuple[Object, bool]:
        """DELETE: delete an object or mark it for deletion. Returns its last state, and whether it is removed."""
        options = options or DeleteOptions()
        old = self.get(resource, namespace, name)
        _check_preconditions(resource, old, options)
        if resource is NAMESPACES and name in UNDELETABLE:
            raise status_errors.forbidden(resource, name, "this namespace may not be deleted")
        kept = resource.strategy.graceful_delete(old, options, self._now())
        if kept is None and old["metadata"].get("finalizers"):
            marks = {"deletionTimestamp": timestamp(self._now()), "deletionGracePeriodSeconds": 0}
            kept = old | {"metadata": marks | old["metadata"]}
        if options.dry_run or kept == old:
            return old, kept is None
        if kept is not None:
            return self.store.put(resource.stored_as, _ordered(kept)), False
        return self.store.remove(resource.stored_as, old), True


def _malformed(resource: Resource, error: MalformedError) -> StatusError:
    kind = resource.kind
    return status_errors.bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {error}')


def _set_namespace(metadata: Object, namespace: str) -> None:
    """Fill in the namespace of the request; the object may not name another."""
    if metadata.setdefault("namespace", namespace) != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_name(obj: Object, name: str) -> None:
    object_name = obj["metadata"].get("name")
    if not object_name:
        raise status_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if object_name != name:
        raise status_errors.bad_request(
            f"the name of the object ({object_name}) does not match the name on the URL ({name})"
        )


def _check_uid(resource: Resource, obj: Object, old: Object | None, namespace: str, name: str) -> None:
    """A PUT that names a UID is meant for that object and no other, nor for a missing one."""
    uid, actual = obj["metadata"].get("uid", ""), old["metadata"]["uid"] if old else ""
    if uid in {"", actual}:
        return
    path = "/".join(part for part in (_STORED_NAMES.get(resource.plural, resource.plural), namespace, name) if part)
    raise status_errors.conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{path}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}",
    )


def _check_version(resource: Resource, obj: Object, old: Object) -> None:
    version, name = obj["metadata"].get("resourceVersion", "0"), old["metadata"]["name"]
    if version == "0":
        if not resource.strategy.unconditional_update:
            cause = StatusCause.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise status_errors.invalid(resource.plural, resource.group, name, [cause])
    elif version != _version(old):
        raise status_errors.conflict(resource, name, CHANGED_MEANWHILE)


def _check_preconditions(resource: Resource, old: Object, options: DeleteOptions) -> None:
    uid, name = old["metadata"]["uid"], old["metadata"]["name"]
    if options.uid not in {None, uid}:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid})"
        raise status_errors.conflict(
            resource, name, f"{why}. The object might have been deleted and then recreated", kind=resource.kind
        )
    if options.resource_version not in {None, _version(old)}:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({_version(old)})"
        )
        raise status_errors.conflict(resource, name, f"{why}. The object might have been modified", kind=resource.kind)


def _is_deletable(obj: Object) -> bool:
    """Whether an object is being deleted, without finalizers and without a grace period."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds") and not (obj.get("spec") or {}).get("finalizers")


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _ordered(obj: Object) -> Object:
    return obj | {"metadata": ordered(obj["metadata"])}
