"""What a request asks for: its path, its query and the representation it wants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.minicluster.errors import ApiError, Fault, bad_request, invalid, no_such_path
from agent.minicluster.selectors import Predicate, both, everything, field_selector, label_selector

if TYPE_CHECKING:
    from agent.minicluster.resource import Resource

_TRUE = {"1", "true", "True", "TRUE", "t", "T"}
_DURATION = re.compile(r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+|0")


@dataclass(frozen=True, slots=True)
class Target:
    """The resource, object or subresource that a path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class ResourceTable:
    """Finds the resource behind a path."""

    def __init__(self, resources: tuple[Resource, ...]) -> None:
        self.resources = resources
        self._by_path = {(one.group, one.version, one.plural): one for one in resources}

    def target(self, path: str) -> Target:
        """What `/api/v1/...` or `/apis/GROUP/VERSION/...` names, or 404."""
        parts = [part for part in path.split("/") if part]
        if parts[0] == "api":
            group, rest = "", parts[1:]
        else:
            group, rest = parts[1], parts[2:]
        version, rest = rest[0], rest[1:]
        namespace = ""
        if len(rest) >= 3 and rest[0] == "namespaces" and (group, version, rest[2]) in self._by_path:
            namespace, rest = rest[1], rest[2:]
        resource = self._by_path.get((group, version, rest[0]))
        if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
            raise no_such_path()
        target = Target(resource, namespace, *rest[1:])
        if target.subresource and target.subresource not in resource.subresources:
            raise no_such_path()
        return target


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The query of a list or a watch."""

    matches: Predicate = everything
    selective: bool = False
    limit: int = 0
    continue_token: str = ""
    version: int | None = None
    exact: bool = False
    watch: bool = False
    timeout_seconds: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None


def list_options(query: Mapping[str, str], resource: Resource) -> ListOptions:
    """Read the query of a list or a watch; what cannot be read is a bad request."""
    fields, labels = query.get("fieldSelector", ""), query.get("labelSelector", "")
    options = ListOptions(
        matches=both(field_selector(fields, resource), label_selector(labels)),
        selective=bool(fields or labels),
        limit=_integer(query.get("limit", "")) or 0,
        continue_token=query.get("continue", ""),
        version=_version(query.get("resourceVersion", "")),
        exact=query.get("resourceVersionMatch") == "Exact",
        watch=flag(query, "watch"),
        timeout_seconds=_integer(query.get("timeoutSeconds", "")),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    _check_initial_events(options, query.get("resourceVersionMatch", ""))
    return options


def _check_initial_events(options: ListOptions, match: str) -> None:
    if options.watch and options.initial_events is not None and match != "NotOlderThan":
        rule = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid("ListOptions", "meta.k8s.io", "", [Fault.forbidden("resourceVersionMatch", rule)])
    if options.watch and options.initial_events is None and match:
        rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid("ListOptions", "meta.k8s.io", "", [Fault.forbidden("resourceVersionMatch", rule)])


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean of the query."""
    return query.get(name, "") in _TRUE


def check_timeout(query: Mapping[str, str]) -> None:
    """`timeout` is a Go duration; here every request is quick enough to need none."""
    text = query.get("timeout", "")
    if text and not _DURATION.fullmatch(text):
        raise bad_request(f'invalid timeout specified in the request URL - time: invalid duration "{text}"')


def _integer(text: str) -> int | None:
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _version(text: str) -> int | None:
    if not text:
        return None
    if not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(500, "", f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)
