"""Orders to the child process that makes keys, requests and certificates."""

import asyncio
import json
import subprocess
from typing import Any

from agent.adapters.certificates.early import CHILD
from agent.adapters.interpreter import python_module
from agent.core.csr import Template
from agent.ports import KeyPair, NotSigned, PreparedRequest

_DEADLINE_SECONDS = 60.0  # two RSA keys on a busy small machine take some seconds
_MOST_WORDS = 300

Child = subprocess.Popen[bytes]


class Smith:
    """Makes keys and what is signed with them, in a process that ends with the order."""

    def __init__(self, early: Child | None = None) -> None:
        self._early = early  # a child that already waits for the first order

    def dismiss_early(self) -> None:
        """Send the child away that waits for the first order: there will be none for a long time."""
        early, self._early = self._early, None
        if early:
            early.kill()
            early.communicate()

    async def request(self, template: Template, key_pem: str = "") -> PreparedRequest:
        """A certificate request, for the given key or a new one."""
        early, self._early = self._early, None
        answer = await _made(_order("request", template, key=key_pem), early)
        return PreparedRequest(
            key_pem=answer["key"],
            csr_pem=answer["csr"],
            public_key=bytes.fromhex(answer["public_key"]),
            is_rsa=answer["is_rsa"],
        )

    async def fault(self, csr_pem: str, key_pem: str, template: Template) -> str:
        """Why a request that was found is not ours; empty if it is."""
        answer = await _made(_order("fault", template, key=key_pem, csr=csr_pem))
        return str(answer["fault"])

    async def self_signed(self, host: str) -> KeyPair:
        """A serving certificate that nobody vouches for."""
        answer = await _made({"order": "self_signed", "host": host})
        return KeyPair(certificate_pem=answer["certificate"], key_pem=answer["key"])


def _order(order: str, template: Template, **more: str) -> dict[str, Any]:
    return {
        "order": order,
        "common_name": template.common_name,
        "organizations": template.organizations,
        "dns_names": template.dns_names,
        "ip_addresses": template.ip_addresses,
        **more,
    }


async def _made(order: dict[str, Any], early: Child | None = None) -> dict[str, Any]:
    said = _said_by(early, json.dumps(order).encode()) if early else _said(json.dumps(order).encode())
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            answer: dict[str, Any] = json.loads(await said)
    except (TimeoutError, OSError, ValueError) as error:
        raise NotSigned(f"unable to make a key: {error or type(error).__name__}") from error
    if "error" in answer:
        raise NotSigned(f"unable to make a key: {answer['error']}")
    return answer


async def _said(order: bytes) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*python_module(CHILD), stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        answer, complaint = await process.communicate(order)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _checked(answer, complaint, process.returncode or 0)


async def _said_by(child: Child, order: bytes) -> bytes:
    """The same from a child that was started before there was an event loop."""
    answer, complaint = await asyncio.to_thread(child.communicate, order, _DEADLINE_SECONDS)
    return _checked(answer, complaint, child.returncode)


def _checked(answer: bytes, complaint: bytes, code: int) -> bytes:
    if code:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        raise OSError(f"the child process ended with {code}: {''.join(last)[:_MOST_WORDS]}")
    return answer
