"""TLS for the embedded cluster: kubectl sends its token to nobody without."""

import os
import ssl

from agent.adapters.certificates.key_worker import KeyWorker
from agent.ports import NotSigned, StartError


async def make_tls(host: str) -> tuple[ssl.SSLContext, str]:
    """A server's context for this address, and the authority (PEM) that vouches for it and is forgotten."""
    try:
        pair = await KeyWorker().self_signed(host)
    except NotSigned as error:
        raise StartError(str(error)) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with os.fdopen(os.memfd_create("key", os.MFD_CLOEXEC), "w") as memory:  # the key is in no file
        memory.write(pair.key_pem + pair.certificate_pem)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{memory.fileno()}")
    return context, pair.certificate_pem
