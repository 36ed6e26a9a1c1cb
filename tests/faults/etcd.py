"""etcd's alarm: without space it takes no more writes."""

import http.client
import json
from typing import Any


def alarm(port: int, *, on: bool) -> None:
    """Raise or end the alarm that there is no space left."""
    member = _ask(port, "/v3/maintenance/status", {})["header"]["member_id"]
    action = "ACTIVATE" if on else "DEACTIVATE"
    _ask(port, "/v3/maintenance/alarm", {"action": action, "alarm": "NOSPACE", "memberID": member})


def _ask(port: int, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body))
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
