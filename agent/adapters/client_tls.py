"""TLS contexts for connections that we open: to the API server, and to what tells about it."""

import ssl

from agent.adapters.certificates.memory import in_memory


def client_context(authority: bytes = b"", *, verify: bool = True) -> ssl.SSLContext:
    """A context that verifies as Go does, by this authority or else by the system's; an SSLError if it does not load.

    Not ssl.create_default_context: it writes the keys of connections to the file that SSLKEYLOGFILE names, and since
    Python 3.13 it asks more of a CA certificate than Go does, and than many clusters' CA fulfils.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # whatever is among the authorities is trusted, root or not
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        with in_memory(authority) as (path,):
            context.load_verify_locations(path)
    else:
        context.load_default_certs()
    return context
