"""What `join` does before the daemon starts: find the cluster, and write what the daemon needs to be let in."""

import base64
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import yaml

from agent.adapters.certificates.bootstrap_files import bootstrap_document, is_still_valid
from agent.adapters.certificates.files import write_whole
from agent.adapters.clock import SystemClock
from agent.adapters.discovery import Cluster, Discovery
from agent.core.errors import ConfigError
from agent.core.model import Object
from agent.ports import StartError

if TYPE_CHECKING:
    from agent.cli.join import Places, Wish

log = logging.getLogger(__name__)


async def become_member(wish: "Wish", places: "Places", *, node_name: str) -> None:
    """Write bootstrap credentials for a cluster that proved to be the right one, unless we are a member already."""
    try:
        if await is_still_valid(places.kubeconfig, datetime.now(UTC), node_name=node_name):
            log.info("This machine has joined already", {"kubeconfig": str(places.kubeconfig)})
            return
        cluster = await _discovered(wish)
        _write(cluster, wish, places)
    except StartError as error:
        raise ConfigError(str(error)) from error
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}; other places: --kubeconfig, "
            "--bootstrap-kubeconfig, --cert-dir, --client-ca-file"
        ) from error
    log.info("Found the cluster", {"server": cluster.server, "bootstrapKubeconfig": str(places.bootstrap)})


async def _discovered(wish: "Wish") -> Cluster:
    discovery = Discovery(clock=SystemClock(), timeout_seconds=wish.patience_seconds)
    if wish.token:
        return await discovery.by_token(wish.endpoint, wish.token, wish.pins)
    return await discovery.by_file(wish.discovery_file)


def _write(cluster: Cluster, wish: "Wish", places: "Places") -> None:
    user: Object = {"token": wish.bootstrap_token} if wish.bootstrap_token else cluster.user
    if not user:
        raise ConfigError(
            "could not find authentication credentials for the TLS bootstrap process. Please use Token discovery, "
            "a discovery file with embedded authentication credentials, or --tls-bootstrap-token"
        )
    known: Object = {"server": cluster.server}
    if cluster.authority_pem:
        known["certificate-authority-data"] = base64.b64encode(cluster.authority_pem.encode()).decode()
        write_whole(places.authority, cluster.authority_pem, mode=0o644)
    write_whole(places.bootstrap, yaml.safe_dump(bootstrap_document(known, user)))
