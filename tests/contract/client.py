"""A tiny client for the Kubernetes API: plain JSON in, status and plain JSON out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from agent.minicluster import MiniCluster

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
CSINODES = "/apis/storage.k8s.io/v1/csinodes"
NAMESPACES = "/api/v1/namespaces"
SIGNING_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said."""

    status: int
    body: Any

    @property
    def refusal(self) -> tuple[int, str, str]:
        """Code, reason and message of a Status object; its code is the HTTP status."""
        assert self.body["kind"] == "Status", self.body
        assert self.body["status"] == "Failure"
        assert self.body["code"] == self.status
        return self.status, self.body.get("reason", ""), self.body["message"]


class Api:
    """An API server with full rights, mini or real."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self._session = session
        self._base_url = base_url
        self._nodes: set[str] = set()

    async def clean_up(self) -> None:
        """Delete the nodes of a test: dead ones would change how the control plane treats those of the next."""
        while self._nodes:
            await self.delete(f"{NODES}/{self._nodes.pop()}")

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        **query: str,
    ) -> Answer:
        """Send one request; a body that is bytes goes as it is."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        async with self._session.request(
            method, self._base_url + path, data=data, headers=headers, params=query
        ) as response:
            raw = await response.read()
            readable = response.content_type == JSON
            answer = Answer(response.status, json.loads(raw) if readable else raw.decode())
        if (method, path, answer.status) == ("POST", NODES, 201):
            self._nodes.add(answer.body["metadata"]["name"])
        return answer

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.request("POST", path, body, **options)

    async def put(self, path: str, body: Any, **options: Any) -> Answer:
        return await self.request("PUT", path, body, **options)

    async def patch(self, path: str, body: Any, content_type: str = STRATEGIC, **options: Any) -> Answer:
        return await self.request("PATCH", path, body, content_type=content_type, **options)

    async def delete(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self.request("DELETE", path, body, **options)

    async def create(self, path: str, body: Any) -> Any:
        """Create an object that must be accepted."""
        answer = await self.post(path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def read(self, path: str) -> Any:
        """Read an object that must be there."""
        answer = await self.get(path)
        assert answer.status == 200, answer.body
        return answer.body

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = JSON, **query: str) -> AsyncIterator[Watch]:
        """Open a watch; the stream ends with the block."""
        params = {"watch": "true", "timeoutSeconds": "30"} | query
        async with self._session.get(self._base_url + path, params=params, headers={"Accept": accept}) as response:
            yield Watch(response)


def bearer(cluster: MiniCluster) -> dict[str, str]:
    """Headers by which the embedded cluster knows whom to serve."""
    return {"Authorization": f"Bearer {cluster.token}"}


class Watch:
    """The events of one watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._lines = response.content

    async def next(self, within: float = 60.0) -> dict[str, Any]:
        """The next event."""
        async with asyncio.timeout(within):
            line = await self._lines.readline()
        assert line, "the watch ended"
        return dict(json.loads(line))

    async def until(self, wanted: Callable[[dict[str, Any]], bool], within: float = 60.0) -> list[dict[str, Any]]:
        """All events up to the first wanted one."""
        seen: list[dict[str, Any]] = []
        async with asyncio.timeout(within):
            while not seen or not wanted(seen[-1]):
                seen.append(await self.next(within))
        return seen

    async def rest(self, within: float = 60.0) -> list[dict[str, Any]]:
        """All events up to the end of the stream."""
        async with asyncio.timeout(within):
            return [json.loads(line) async for line in self._lines]


async def eventually(
    read: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool], within: float = 60.0, every: float = 0.05
) -> Any:
    """What is read once it holds; controllers need a moment."""
    async with asyncio.timeout(within):
        while True:
            value = await read()
            if holds(value):
                return value
            await asyncio.sleep(every)


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    """A node condition with fixed times."""
    times = {"lastHeartbeatTime": "2026-01-02T03:04:05Z", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    return {"type": kind, "status": status, "reason": "Because", "message": "told", **times, **more}
