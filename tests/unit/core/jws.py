"""The signature of cluster-info that a bootstrap token makes."""

import base64
import hmac
import json

from agent.core.discovery import Token

TOKEN = Token("abcdef", "0123456789abcdef")
CONTENT = "apiVersion: v1\nkind: Config\n"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signature(*, content=CONTENT, secret=TOKEN.secret, **header):
    head = b64(json.dumps({"alg": "HS256", "kid": TOKEN.id} | header).encode())
    tag = hmac.digest(secret.encode(), f"{head}.{b64(content.encode())}".encode(), "sha256")
    return f"{head}..{b64(tag)}"
