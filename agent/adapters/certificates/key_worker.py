"""Keys, certificate requests and self-signed certificates, made by a child process for each order."""

import asyncio
import json
import subprocess
from typing import Any, Literal

from agent.adapters.child_process import KEY_WORKER_MODULE, python_module
from agent.core.csr import Template
from agent.ports import KeyPair, NotSigned, PreparedRequest

_DEADLINE_SECONDS = 60.0  # two RSA keys on a busy small machine take some seconds
_MAX_STDERR = 300


class KeyWorker:
    """Makes keys and what is signed with them, in a child process that ends with its order."""

    def __init__(self, prestarted: subprocess.Popen[bytes] | None = None) -> None:
        self._prestarted = prestarted  # takes the first order

    def stop_prestarted(self) -> None:
        """End the child process that waits for the first order, which will not come for a long time."""
        child, self._prestarted = self._prestarted, None
        if child:
            child.kill()
            child.communicate()

    async def request(self, template: Template, key_pem: str = "") -> PreparedRequest:
        """Make a certificate request, for this key or a new one."""
        child, self._prestarted = self._prestarted, None
        answer = await _answer(_order("request", template, key=key_pem), child)
        return PreparedRequest(
            key_pem=answer["key"],
            csr_pem=answer["csr"],
            public_key=bytes.fromhex(answer["public_key"]),
            is_rsa=answer["is_rsa"],
        )

    async def fault(self, csr_pem: str, key_pem: str, template: Template) -> str:
        """Return why a stored request does not belong to this key and template; empty if it does."""
        answer = await _answer(_order("fault", template, key=key_pem, csr=csr_pem))
        return str(answer["fault"])

    async def self_signed(self, host: str) -> KeyPair:
        """Make a serving certificate that no known authority has signed."""
        answer = await _answer({"order": "self_signed", "host": host})
        return KeyPair(certificate_pem=answer["certificate"], key_pem=answer["key"])


def _order(order: Literal["request", "fault"], template: Template, **fields: str) -> dict[str, Any]:
    return {
        "order": order,
        "common_name": template.common_name,
        "organizations": template.organizations,
        "dns_names": template.dns_names,
        "ip_addresses": template.ip_addresses,
        **fields,
    }


async def _answer(order: dict[str, Any], prestarted: subprocess.Popen[bytes] | None = None) -> dict[str, Any]:
    text = json.dumps(order).encode()
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            stdout, stderr, code = await (_communicate_with(prestarted, text) if prestarted else _communicate(text))
        answer: dict[str, Any] = {} if code else json.loads(stdout)
    except (TimeoutError, OSError, ValueError) as error:
        raise NotSigned(f"unable to make a key: {error or type(error).__name__}") from error
    if code:
        last_line = "".join(stderr.decode(errors="replace").strip().splitlines()[-1:])
        raise NotSigned(f"unable to make a key: the child process ended with {code}: {last_line[:_MAX_STDERR]}")
    if "error" in answer:
        raise NotSigned(f"unable to make a key: {answer['error']}")
    return answer


async def _communicate(order: bytes) -> tuple[bytes, bytes, int]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *python_module(KEY_WORKER_MODULE), stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        stdout, stderr = await child.communicate(order)
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return stdout, stderr, child.returncode or 0


async def _communicate_with(child: subprocess.Popen[bytes], order: bytes) -> tuple[bytes, bytes, int]:
    """Communicate with a child process that was started before there was an event loop."""
    stdout, stderr = await asyncio.to_thread(child.communicate, order, _DEADLINE_SECONDS)
    return stdout, stderr, child.returncode
