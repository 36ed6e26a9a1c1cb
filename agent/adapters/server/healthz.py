"""The kubelet's healthz handler: all checks at /healthz, each of them below it."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from aiohttp import web

from agent.klog import V2, quoted

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""None when well, else the reason."""

Observe = Callable[[str, bool], None]
"""Told the name of each check that was asked, and whether it was well."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""Answers a request of any method, as Go's mux has it."""

Telling = Callable[[web.BaseRequest], bool]
"""Whether who asks is told the reasons."""


def _never(_: web.BaseRequest) -> bool:
    return False


def healthz_handlers(
    checks: Mapping[str, Check], *, telling: Telling = _never, observe: Observe = lambda _name, _well: None
) -> dict[str, Handler]:
    """/healthz with ?verbose and ?exclude=, and /healthz/<name>; /healthz withholds reasons from all not `telling`."""
    single: dict[str, Handler] = {f"/healthz/{name}": partial(_single, check) for name, check in checks.items()}
    return {"/healthz": _Healthz(checks, telling, observe).answer, **single}


class _Healthz(NamedTuple):
    """All checks at once."""

    checks: Mapping[str, Check]
    telling: Telling
    observe: Observe

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """`ok`, a line a check if that is asked for, or 500 and always a line a check."""
        excluded, lines, failed = set(request.query.getall("exclude", ())), [], []
        for name, check in self.checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok\n")
                continue
            reason = check()
            self.observe(name, reason is None)
            if reason is not None:
                failed.append(f"[-]{name} failed: {reason}")
            lines.append(_line(name, reason, withheld=not self.telling(request)))
        if unknown := sorted(excluded - self.checks.keys()):
            names = ",".join(map(quoted, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}\n")
        return _verdict("".join(lines), failed, verbose="verbose" in request.query)


def _line(name: str, reason: str | None, *, withheld: bool) -> str:
    if reason is None:
        return f"[+]{name} ok\n"
    return f"[-]{name} failed: {'reason withheld' if withheld else reason}\n"


def _verdict(lines: str, failed: list[str], *, verbose: bool) -> web.Response:
    if failed:
        log.log(V2, "healthz check failed", {"checks": failed})
        return _text(f"{lines}healthz check failed\n", status=500)
    return _text(f"{lines}healthz check passed\n" if verbose else "ok")


async def _single(check: Check, _: web.BaseRequest) -> web.Response:
    reason = check()
    return _text("ok") if reason is None else _text(f"internal server error: {reason}\n", status=500)


def _text(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, headers={"X-Content-Type-Options": "nosniff"})
