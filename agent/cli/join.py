"""`fake-kubelet join`: finds the cluster with kubeadm's flags, writes bootstrap credentials, becomes the daemon."""

import base64
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from agent import klog
from agent.adapters.child_process import python_module
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import CLIENT_CA, Effective, effective
from agent.adapters.settings.pflag import WITHOUT_VALUE, parse_flags
from agent.adapters.settings.table import FLAGS, OURS, Flag
from agent.core.config import SIMULATED, simulation_fields
from agent.core.discovery import Token, parse_pins, parse_token
from agent.core.errors import ConfigError
from agent.core.model import Object
from agent.core.times import parse_seconds

if TYPE_CHECKING:
    from agent.adapters.discovery import Cluster

log = logging.getLogger(__name__)

_ROWS = (
    Flag("token", "string", OURS, "Bootstrap token, to find the cluster with and to be let in.", metavar="TOKEN"),
    Flag("discovery-token", "string", OURS, "Token to find the cluster with.", metavar="TOKEN"),
    Flag("tls-bootstrap-token", "string", OURS, "Token to be let in with.", metavar="TOKEN"),
    Flag("discovery-token-ca-cert-hash", "strings", OURS, "sha256:… of the cluster's CA; repeatable.", metavar="HASH"),
    Flag("discovery-token-unsafe-skip-ca-verification", "bool", OURS, "Trust whoever knows the token."),
    Flag("discovery-file", "string", OURS, "Kubeconfig that describes the cluster: file or https.", metavar="FILE"),
    Flag("discovery-timeout", "duration", OURS, "How long to look for the cluster. Default: 5m."),
    Flag("node-name", "string", OURS, "Node name, as --hostname-override.", metavar="NAME"),
    Flag("cri-socket", "string", OURS, "Taken for kubeadm's sake; there is no runtime.", metavar="PATH"),
    Flag("ignore-preflight-errors", "strings", OURS, "Taken for kubeadm's sake; there are no such checks."),
)
_EXAMPLE = "fake-kubelet join 192.0.2.1:6443 --token TOKEN --discovery-token-ca-cert-hash sha256:HASH"
FLAGS_OF_JOIN = {flag.name: flag for flag in _ROWS}


class JoinCommand(TyperCommand):
    """Its own flags in kubelet's grammar; all others are the daemon's."""

    rows: Sequence[Flag] = _ROWS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave only --help to typer; the other arguments are in `ctx.obj`."""
        wants_help = bool({"-h", "--help"} & set(args))
        ctx.obj = {**(ctx.obj or {}), "arguments": args}
        return super().parse_args(ctx, ["--help"] if wants_help else [])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List kubeadm's flags, and refer to kubelet's."""
        with formatter.section("Flags"):
            rows = [(f"--{flag.name} {flag.metavar}".strip(), flag.help) for flag in self.rows]
            formatter.write_dl([*rows, ("--node-labels K=V ...", "All flags of `fake-kubelet --help`.")], col_max=46)


@dataclass(frozen=True, slots=True)
class CredentialPaths:
    """The files that `join` writes and the daemon reads."""

    kubeconfig: Path
    bootstrap: Path
    certificates: Path
    authority: Path

    @classmethod
    def from_settings(cls, settings: Effective, *, folder: Path | None = None) -> "CredentialPaths":
        """Take each path from the settings, else from `folder`.

        Without a folder, it is kubeadm's for root and ~/.fake-kubelet for other users.
        """
        flags, as_kubeadm = settings.flags, folder is None and os.geteuid() == 0
        folder = folder or (Path("/etc/kubernetes") if as_kubeadm else _home() / ".fake-kubelet")
        pki = FLAGS["cert-dir"].default if as_kubeadm else folder / "pki"
        authority = settings.kubelet["authentication"]["x509"]["clientCAFile"] if CLIENT_CA in settings.origins else ""
        return cls(
            kubeconfig=Path(flags.get("kubeconfig", folder / "kubelet.conf")),
            bootstrap=Path(flags.get("bootstrap-kubeconfig", folder / "bootstrap-kubelet.conf")),
            certificates=Path(flags.get("cert-dir", pki)),
            authority=Path(authority or folder / "pki" / "ca.crt"),
        )


@dataclass(frozen=True, slots=True)
class JoinConfiguration:
    """The cluster to join, and the tokens to find it and to be let in with."""

    endpoint: str
    discovery_file: str
    token: Token | None
    bootstrap_token: str = field(repr=False)
    pins: frozenset[str]
    discovery_timeout_seconds: float


def join(arguments: Sequence[str]) -> None:
    """Find the cluster, write bootstrap credentials, and replace this process by the daemon."""
    words, daemon = split_arguments(arguments)
    line = parse_flags(words, FLAGS_OF_JOIN)
    join_config = join_configuration(line.words, line.values)
    if "node-name" in line.values:
        daemon = [*daemon, f"--hostname-override={line.values['node-name']}"]
    settings = effective(daemon)
    paths, node = CredentialPaths.from_settings(settings), build_config(settings).node
    import asyncio  # noqa: PLC0415  too heavy for --help

    logging_config = settings.kubelet["logging"]
    is_json = logging_config["format"] == "json"
    klog.set_up(logging_config["verbosity"], log_format="json" if is_json else "plain")
    asyncio.run(write_bootstrap_credentials(join_config, paths, node_name=node.node_name))
    if (fields := simulation_fields(node)) is not None:
        log.info(SIMULATED, fields)
    # The daemon has neither httpx in its memory nor the token in its command line.
    argv = python_module("agent", *daemon_flags(daemon, paths, settings))
    logging.shutdown()
    os.execv(argv[0], argv)  # noqa: S606


async def write_bootstrap_credentials(
    join_config: JoinConfiguration, paths: CredentialPaths, *, node_name: str
) -> None:
    """Find the cluster and write bootstrap credentials for it, unless the kubeconfig has a valid certificate."""
    from agent.adapters.certificates.bootstrap_files import is_still_valid  # noqa: PLC0415  too heavy for --help
    from agent.adapters.clock import SystemClock  # noqa: PLC0415  as above
    from agent.adapters.discovery import Discovery  # noqa: PLC0415  httpx
    from agent.ports import StartError  # noqa: PLC0415  as above

    try:
        if await is_still_valid(paths.kubeconfig, datetime.now(UTC), node_name=node_name):
            log.info("This machine has joined already", {"kubeconfig": str(paths.kubeconfig)})
            return
        discovery = Discovery(clock=SystemClock(), timeout_seconds=join_config.discovery_timeout_seconds)
        if join_config.token:
            cluster = await discovery.by_token(join_config.endpoint, join_config.token, join_config.pins)
        else:
            cluster = await discovery.by_file(join_config.discovery_file)
        _write_credentials(cluster, join_config, paths)
    except StartError as error:
        raise ConfigError(str(error), hint=error.hint) from error
    except OSError as error:
        raise ConfigError(
            f"cannot write {error.filename}: {error.strerror}",
            hint="choose other places with --kubeconfig, --bootstrap-kubeconfig, --cert-dir and --client-ca-file",
        ) from error
    log.info("Found the cluster", {"server": cluster.server, "bootstrapKubeconfig": str(paths.bootstrap)})


def _write_credentials(cluster: "Cluster", join_config: JoinConfiguration, paths: CredentialPaths) -> None:
    import yaml  # noqa: PLC0415  too heavy for --help

    from agent.adapters.certificates.bootstrap_files import bootstrap_document  # noqa: PLC0415  as above
    from agent.adapters.certificates.files import write_whole  # noqa: PLC0415  as above

    user: Object = {"token": join_config.bootstrap_token} if join_config.bootstrap_token else cluster.user
    if not user:
        raise ConfigError(
            "could not find authentication credentials for the TLS bootstrap process. Please use Token discovery, "
            "a discovery file with embedded authentication credentials, or --tls-bootstrap-token"
        )
    entry: Object = {"server": cluster.server}
    if cluster.authority_pem:
        entry["certificate-authority-data"] = base64.b64encode(cluster.authority_pem.encode()).decode()
        write_whole(paths.authority, cluster.authority_pem, mode=0o644)
    write_whole(paths.bootstrap, yaml.safe_dump(bootstrap_document(entry, user)))


def split_arguments(arguments: Sequence[str], own: Mapping[str, Flag] = FLAGS_OF_JOIN) -> tuple[list[str], list[str]]:
    """Split a command line into the arguments of this command and those of the daemon."""
    ours: list[str] = []
    theirs: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, _ = word[2:].partition("=") if word.startswith("--") else (word[1:], "", "")
        name = name.replace("_", "-")
        flag = own.get(name) or FLAGS.get(name)
        target = ours if name in own or not word.startswith("-") else theirs
        target.append(word)
        takes_next = word.startswith("-") and flag and not equals and flag.kind not in WITHOUT_VALUE
        if takes_next and rest:
            target.append(rest.pop(0))
    return ours, theirs


def join_configuration(words: Sequence[str], flags: Mapping[str, Any]) -> JoinConfiguration:
    """Read the arguments of `join`. Raises ConfigError, in kubeadm's words, if some are missing or contradict."""
    file, token = flags.get("discovery-file", ""), flags.get("discovery-token", flags.get("token", ""))
    if len(words) > 1 or bool(words) == bool(file):
        raise ConfigError("join needs the address of one API server, HOST:PORT, or --discovery-file", hint=_EXAMPLE)
    pins = parse_pins(flags.get("discovery-token-ca-cert-hash", ()))
    if words and not token:
        raise ConfigError(
            "join needs --token to find the cluster with",
            hint="`kubeadm token create --print-join-command` on the control plane prints the whole line",
        )
    if words and not pins and not flags.get("discovery-token-unsafe-skip-ca-verification"):
        raise ConfigError(
            "using token-based discovery without caCertHashes can be unsafe. "
            "Set --discovery-token-unsafe-skip-ca-verification to continue",
            hint="better: --discovery-token-ca-cert-hash, as `kubeadm token create --print-join-command` prints it",
        )
    bootstrap_token = flags.get("tls-bootstrap-token", flags.get("token", ""))
    if bootstrap_token:
        parse_token(bootstrap_token)
    return JoinConfiguration(
        endpoint=_endpoint(words[0]) if words else "",
        discovery_file=file,
        token=parse_token(token) if words else None,
        bootstrap_token=bootstrap_token,
        pins=pins,
        discovery_timeout_seconds=parse_seconds(flags.get("discovery-timeout", "5m")),
    )


def daemon_flags(daemon: Sequence[str], paths: CredentialPaths, settings: Effective) -> list[str]:
    """Return the daemon's command line: the user's flags, then what kubeadm sets in a kubelet's configuration."""
    path_flags = {
        "kubeconfig": paths.kubeconfig,
        "bootstrap-kubeconfig": paths.bootstrap,
        "cert-dir": paths.certificates,
    }
    added = [*daemon, *(f"--{name}={path}" for name, path in path_flags.items() if name not in settings.flags)]
    defaults = {"rotateCertificates": "--rotate-certificates=true", CLIENT_CA: f"--client-ca-file={paths.authority}"}
    return [*added, *(flag for name, flag in defaults.items() if name not in settings.origins)]


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # a user whom the system does not know, and no HOME
        raise ConfigError("there is no home directory to keep credentials in", hint="HOME can name one") from error


def _endpoint(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or "/" in text:
        raise ConfigError(f'"{text}" is no address of an API server', hint=_EXAMPLE)
    return text
