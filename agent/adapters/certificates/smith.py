"""Orders to the child process that makes keys, requests and certificates."""

import asyncio
import json
import sys
from typing import Any

from agent.core.csr import Template
from agent.ports import KeyPair, NotSigned, PreparedRequest

_DEADLINE_SECONDS = 60.0  # two RSA keys on a busy small machine take some seconds
_CHILD = "agent.adapters.certificates.child"
_MOST_WORDS = 300


class Smith:
    """Makes keys and what is signed with them, in a process that ends with the order."""

    async def request(self, template: Template, key_pem: str = "") -> PreparedRequest:
        """A certificate request, for the given key or a new one."""
        answer = await _made(_order("request", template, key=key_pem))
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


async def _made(order: dict[str, Any]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            answer: dict[str, Any] = json.loads(await _said(json.dumps(order).encode()))
    except (TimeoutError, OSError, ValueError) as error:
        raise NotSigned(f"unable to make a key: {error or type(error).__name__}") from error
    if "error" in answer:
        raise NotSigned(f"unable to make a key: {answer['error']}")
    return answer


async def _said(order: bytes) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", _CHILD, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        answer, complaint = await process.communicate(order)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = complaint.decode(errors="replace").strip().splitlines()[-1:]
        raise OSError(f"the child process ended with {process.returncode}: {''.join(last)[:_MOST_WORDS]}")
    return answer
