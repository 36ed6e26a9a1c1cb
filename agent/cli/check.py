"""What `config check` looks at beyond the settings: this machine, and the way to the cluster."""

from pathlib import Path

from agent.adapters.host import LinuxHost
from agent.core.capacity import check_reservations
from agent.core.config import Config
from agent.ports import StartError


async def check_here(config: Config) -> None:
    """Raise what the daemon would end with on this machine; settings without a kubeconfig may be for another one."""
    check_reservations(config, await LinuxHost(config).snapshot())
    if config.kubeconfig:
        from agent.adapters.credentials import load_credentials  # noqa: PLC0415  the Kubernetes client

        await load_credentials(_credentials(config))


def _credentials(config: Config) -> str:
    """The file that the daemon would begin with."""
    bootstrap = config.certificates.bootstrap_kubeconfig
    try:
        return bootstrap if bootstrap and not Path(config.kubeconfig).exists() else config.kubeconfig
    except OSError as error:
        raise StartError(f"cannot read --kubeconfig {config.kubeconfig}: {error.strerror}") from error
