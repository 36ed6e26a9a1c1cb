"""The HTTP handlers of the API server: each request becomes a call of the registry, each result JSON."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, cast

import msgspec
from aiohttp import web

from agent.core.model import Object, PodObject
from agent.minicluster import status_errors
from agent.minicluster.api_discovery import discovery_documents
from agent.minicluster.api_resources import BINDINGS, TOKEN_REVIEWS
from agent.minicluster.kubelet_location import log_location, stream_location
from agent.minicluster.node_strategy import NODES
from agent.minicluster.objects import check_type
from agent.minicluster.pod_strategy import PODS, bind, decode_binding
from agent.minicluster.requests import RequestInfo, ResourceTable, check_timeout, in_namespace, list_options, query_flag
from agent.minicluster.resource_metrics import METRICS, ResourceMetrics
from agent.minicluster.responses import View, Watch, negotiate, transform, transform_list
from agent.minicluster.status_errors import StatusError
from agent.minicluster.strategy import DeleteOptions, Resource

if TYPE_CHECKING:
    from asyncio import BaseProtocol
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from agent.minicluster.authentication import Authenticator
    from agent.minicluster.kubelet_client import KubeletClient
    from agent.minicluster.registry import GenericRegistry
    from agent.minicluster.requests import ListOptions

MAX_BODY_BYTES = 3 * 1024 * 1024
_HEALTH_PATHS = {"/healthz", "/livez", "/readyz"}
_CONNECTING = {"log", "exec", "attach", "portforward", "proxy"}
_BODY_TYPES = {"application/json", "application/octet-stream", ""}


class ApiServer:
    """Serves the resources of the registry over HTTP."""

    def __init__(
        self,
        *,
        registry: GenericRegistry,
        resources: tuple[Resource, ...],
        now: Callable[[], datetime],
        authenticator: Authenticator,
        kubelets: KubeletClient,
    ) -> None:
        self._registry = registry
        self._resources = ResourceTable(resources)
        self._now = now
        self._authenticator = authenticator
        self._kubelets = kubelets
        self._metrics = ResourceMetrics(registry.store, kubelets, now=now)
        self._documents = discovery_documents(resources)
        self.on_authenticated: Callable[[BaseProtocol], None] = lambda _: None

    def application(self) -> web.Application:
        """The aiohttp application that answers all paths."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; a StatusError becomes a Status object."""
        try:
            return await self._route(request)
        except StatusError as error:
            return _json(error.body(), error.code)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        self._authenticator.check_origin(request)
        if path in _HEALTH_PATHS or path.startswith(("/livez/", "/readyz/")):
            return web.Response(text="ok")
        self._authenticator.check_token(request)
        if request.protocol is not None:
            self.on_authenticated(request.protocol)
        if path in self._documents:
            return _json(self._documents[path])
        parts = path.split("/")
        prefix = f"/{parts[1]}/{parts[2]}" if len(parts) > 3 else ""
        if prefix != "/api/v1" and prefix not in self._documents:
            if len(parts) > 4 and request.method == "POST":
                raise status_errors.not_served_here(f"{parts[-1]}.{parts[2]}")
            return web.Response(status=404, text="404 page not found\n")
        if len(parts) < 4 or (parts[1] == "apis" and len(parts) < 5):
            raise status_errors.no_such_path()
        check_timeout(request.query)
        return await self._dispatch(request, self._resources.resolve(path))

    async def _dispatch(self, request: web.Request, info: RequestInfo) -> web.StreamResponse:
        resource, verb = info.resource, _verb_of(request.method, info)
        if verb not in (resource.subresources[info.subresource] if info.subresource else resource.verbs):
            raise status_errors.method_not_allowed()
        if info.subresource in _CONNECTING:
            return await self._connect(request, info)
        view = negotiate(request.headers.get("Accept", ""), request.query.get("includeObject", ""))
        if verb in {"get", "list"}:
            return await self._read(verb, request, info, view)
        if verb == "deletecollection":
            return self._delete_collection(request, info, view)
        if resource.answer and request.content_type not in _BODY_TYPES:
            return _json(self._answer(resource, {}), 201)  # kubectl asks in protobuf; the answer is the same for all
        body = await _body(request, optional=verb == "delete", patch=verb == "patch")
        return self._write(verb, info, body, request, view)

    async def _read(self, verb: str, request: web.Request, info: RequestInfo, view: View) -> web.StreamResponse:
        if info.resource in METRICS:
            return await self._live_objects(request, info, view)
        if verb == "list":
            return await self._list(request, info, view)
        obj = self._registry.get(info.resource, info.namespace, info.name)
        return self._object_response(info.resource, obj, view)

    def _write(self, verb: str, info: RequestInfo, body: Any, request: web.Request, view: View) -> web.Response:
        resource, dry_run = info.resource, "dryRun" in request.query
        if verb == "delete":
            return self._delete(info, _delete_options(body, request.query), view)
        if verb == "patch":
            obj = self._registry.patch(
                resource,
                info.namespace,
                info.name,
                body,
                request.content_type,
                subresource=info.subresource,
                dry_run=dry_run,
            )
            return self._object_response(resource, obj, view)
        if resource is BINDINGS or (verb == "create" and info.subresource):
            return self._create_pod_subresource(info, body)
        check_type(resource, body)
        if verb == "update":
            obj, created = self._registry.replace(
                resource, info.namespace, info.name, body, subresource=info.subresource, dry_run=dry_run
            )
            return self._object_response(resource, obj, view, 201 if created else 200)
        if resource.answer:
            return _json(self._answer(resource, body), 201)
        return self._object_response(
            resource, self._registry.create(resource, info.namespace, body, dry_run=dry_run), view, 201
        )

    def _answer(self, resource: Resource, body: Object) -> Object:
        """Return the review with its status."""
        head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
        if resource is TOKEN_REVIEWS:
            return head | body | {"status": self._authenticator.token_status(body)}
        return head | (resource.answer(body) if resource.answer else body)

    def _create_pod_subresource(self, info: RequestInfo, body: Any) -> web.Response:
        """Bind a pod to a node, or evict it."""
        if info.subresource == "eviction":
            options = _delete_options((body or {}).get("deleteOptions"), {})
            self._registry.delete(PODS, info.namespace, info.name, options)
        else:
            bind(self._registry.store, info.namespace, decode_binding(body, info.name), self._now())
        return _json(_success() | {"code": 201}, 201)

    async def _connect(self, request: web.Request, info: RequestInfo) -> web.StreamResponse:
        """Pass a request on to the kubelet that it is for."""
        if info.resource is NODES:
            return await self._kubelets.proxy(request, info.name)
        pod = cast("PodObject", self._registry.get(PODS, info.namespace, info.name))
        if info.subresource != "log":
            return await self._kubelets.upgrade(request, stream_location(pod, info.subresource, request.query))
        location = log_location(pod, request.query)
        if location is None:
            return web.Response(status=204)
        return await self._kubelets.log(request, location, info.name)

    async def _live_objects(self, request: web.Request, info: RequestInfo, view: View) -> web.Response:
        """Answer with what is measured now: the metrics of one node or pod, or of all that the selectors match."""
        resource = info.resource
        if info.name:
            obj = await self._metrics.get(resource, info.namespace, info.name)
            return self._object_response(resource, obj, view)
        matches = in_namespace(info.namespace, list_options(request.query, resource).matches)
        items = [obj for obj in await self._metrics.list(resource) if matches(obj)]
        return _json(transform_list(resource, items, {}, view, self._now()))

    def _delete(self, info: RequestInfo, options: DeleteOptions, view: View) -> web.Response:
        resource = info.resource
        obj, gone = self._registry.delete(resource, info.namespace, info.name, options)
        if not gone or resource.strategy.returns_deleted:
            return self._object_response(resource, obj, view)
        named = status_errors.details(info.name, resource.group, resource.plural)
        return _json(_success() | {"details": named | {"uid": obj["metadata"]["uid"]}})

    def _delete_collection(self, request: web.Request, info: RequestInfo, view: View) -> web.Response:
        resource = info.resource
        options = list_options(request.query, resource)
        deleted = []
        for obj in self._selected(info, options):
            metadata = obj["metadata"]
            deleted.append(self._registry.delete(resource, metadata.get("namespace", ""), metadata["name"])[0])
        metadata = {"resourceVersion": str(self._registry.store.resource_version)}
        return _json(transform_list(resource, deleted, metadata, view, self._now()))

    async def _list(self, request: web.Request, info: RequestInfo, view: View) -> web.StreamResponse:
        options = list_options(request.query, info.resource)
        if options.watch:
            return await self._watch(request, info, options, view)
        current = self._registry.store.resource_version
        if options.version is not None and options.version > current:
            raise status_errors.version_too_large(options.version, current)
        items = self._selected(info, options)
        items, metadata = _page(items, options, current)
        return _json(transform_list(info.resource, items, metadata, view, self._now()))

    def _selected(self, info: RequestInfo, options: ListOptions) -> list[Object]:
        objects = self._registry.store.list(info.resource.stored_as, info.namespace)
        matches = in_namespace(info.namespace, options.matches)
        return [obj for obj in objects if matches(obj)]

    async def _watch(
        self, request: web.Request, info: RequestInfo, options: ListOptions, view: View
    ) -> web.StreamResponse:
        watch = Watch(
            store=self._registry.store,
            resource=info.resource,
            namespace=info.namespace,
            options=options,
            view=view,
            now=self._now,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        async for chunk in watch.lines():
            await response.write(chunk)
        return response

    def _object_response(self, resource: Resource, obj: Object, view: View, status: int = 200) -> web.Response:
        return _json(transform(resource, obj, view, self._now()), status)


def _verb_of(method: str, info: RequestInfo) -> str:
    """The API's verb for an HTTP method on a collection or an object."""
    if info.name:
        verbs = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        if info.subresource:
            verbs["POST"] = "create"
    else:
        if info.resource.namespaced and not info.namespace and method not in {"GET", "HEAD"}:
            raise status_errors.method_not_allowed()
        verbs = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
    if method not in verbs:
        raise status_errors.method_not_allowed()
    return verbs[method]


async def _body(request: web.Request, *, optional: bool, patch: bool) -> Any:
    if not patch and request.content_type not in _BODY_TYPES:
        accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise StatusError(415, "UnsupportedMediaType", message)
    raw = await request.read()
    if not raw and optional:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        what = "error decoding patch" if patch else "the object provided is unrecognized"
        raise status_errors.bad_request(f"{what}: json parse error: {error}") from error


def _delete_options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    options = body or {}
    preconditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    return DeleteOptions(
        grace_period_seconds=None if grace is None else int(grace),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run="dryRun" in query or bool(options.get("dryRun")) or query_flag(query, "dryRun"),
    )


def _page(items: Sequence[Object], options: ListOptions, current: int) -> tuple[list[Object], Object]:
    """Return one page of a list and the list's metadata; a continue token names the last object of a page."""
    metadata: Object = {"resourceVersion": str(current)}
    left = list(items)
    if options.continue_token:
        after = _decode_token(options.continue_token)
        left = [obj for obj in left if _sort_key(obj) > after]
    if not options.limit or len(left) <= options.limit:
        return left, metadata
    page, rest = left[: options.limit], left[options.limit :]
    metadata["continue"] = base64.urlsafe_b64encode("\0".join(_sort_key(page[-1])).encode()).decode()
    if not options.selective:
        metadata["remainingItemCount"] = len(rest)
    return page, metadata


def _sort_key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _decode_token(token: str) -> tuple[str, str]:
    try:
        namespace, _, name = base64.urlsafe_b64decode(token).decode().partition("\0")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise status_errors.bad_request("continue key is not valid") from error
    return namespace, name


def _success() -> Object:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def _json(obj: Object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(obj) + b"\n", status=status, content_type="application/json")
