"""`fake-kubelet join`: kubeadm's words, then the daemon in our place."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from agent import klog
from agent.adapters.interpreter import python_module
from agent.adapters.settings.effective import Effective, effective
from agent.adapters.settings.node_config import node_config
from agent.adapters.settings.pflag import parse
from agent.adapters.settings.table import FLAGS, OURS, Flag
from agent.adapters.settings.values import WITHOUT_VALUE
from agent.core.discovery import Token, parse_pins, parse_token
from agent.core.errors import ConfigError
from agent.core.times import parse_seconds

_ROWS = (
    Flag("token", "string", OURS, "Bootstrap token, to find the cluster with and to be let in.", metavar="TOKEN"),
    Flag("discovery-token", "string", OURS, "Token to find the cluster with.", metavar="TOKEN"),
    Flag("tls-bootstrap-token", "string", OURS, "Token to be let in with.", metavar="TOKEN"),
    Flag("discovery-token-ca-cert-hash", "strings", OURS, "sha256:… of the cluster's CA; repeatable.", metavar="HASH"),
    Flag("discovery-token-unsafe-skip-ca-verification", "bool", OURS, "Trust whoever knows the token."),
    Flag("discovery-file", "string", OURS, "Kubeconfig that tells about the cluster: file or https.", metavar="FILE"),
    Flag("discovery-timeout", "duration", OURS, "How long to look for the cluster. Default: 5m."),
    Flag("node-name", "string", OURS, "Node name, as --hostname-override.", metavar="NAME"),
    Flag("cri-socket", "string", OURS, "Taken for kubeadm's sake; there is no runtime.", metavar="PATH"),
    Flag("ignore-preflight-errors", "strings", OURS, "Taken for kubeadm's sake; there are no such checks."),
)
CLIENT_CA = "authentication.x509.clientCAFile"
# What kubeadm writes into a kubelet's configuration: without one, a kubelet would serve everybody.
_KUBEADM = {
    "rotateCertificates": "--rotate-certificates=true",
    "authentication.anonymous.enabled": "--anonymous-auth=false",
    "authentication.webhook.enabled": "--authentication-token-webhook=true",
    "authorization.mode": "--authorization-mode=Webhook",
    "readOnlyPort": "--read-only-port=0",
}
FLAGS_OF_JOIN = {flag.name: flag for flag in _ROWS}


class JoinCommand(TyperCommand):
    """Its own flags in kubelet's grammar; all others are the daemon's."""

    rows: Sequence[Flag] = _ROWS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave only a cry for help to typer; the rest is in `ctx.obj`."""
        wants_help = bool({"-h", "--help"} & set(args))
        ctx.obj = {**(ctx.obj or {}), "arguments": args}
        return super().parse_args(ctx, ["--help"] if wants_help else [])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Kubeadm's flags, and a word about kubelet's."""
        with formatter.section("Flags"):
            rows = [(f"--{flag.name} {flag.metavar}".strip(), flag.help) for flag in self.rows]
            formatter.write_dl([*rows, ("--node-labels K=V ...", "All flags of `fake-kubelet --help`.")], col_max=46)


@dataclass(frozen=True, slots=True)
class Places:
    """The files that make a machine a member, where kubeadm has them."""

    kubeconfig: Path
    bootstrap: Path
    certificates: Path
    authority: Path

    @classmethod
    def of(cls, settings: Effective, *, folder: Path | None = None) -> "Places":
        """As the settings say, else in the folder; without one, kubeadm's places for root, and our own for others."""
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
class Wish:
    """Which cluster is to be joined, and as whom."""

    endpoint: str
    discovery_file: str
    token: Token | None
    bootstrap_token: str = field(repr=False)
    pins: frozenset[str]
    patience_seconds: float


def join(arguments: Sequence[str]) -> None:
    """Find the cluster, write its credentials, and become the daemon; it takes over this process."""
    words, daemon = split(arguments)
    line = parse(words, FLAGS_OF_JOIN)
    wish = wanted(line.words, line.values)
    if "node-name" in line.values:
        daemon = [*daemon, f"--hostname-override={line.values['node-name']}"]
    settings = effective(daemon)
    places, name = Places.of(settings), node_config(settings).node_name
    import asyncio  # noqa: PLC0415  too heavy for --help

    from agent.cli.membership import become_member  # noqa: PLC0415  httpx and all: not for --help

    klog.set_up(settings.kubelet["logging"]["verbosity"], log_format=settings.kubelet["logging"]["format"])
    asyncio.run(become_member(wish, places, node_name=name))
    # The daemon has neither httpx in its memory nor the token in its command line.
    argv = python_module("agent", *daemon_flags(daemon, places, settings))
    os.execv(argv[0], argv)  # noqa: S606


def split(arguments: Sequence[str], own: Mapping[str, Flag] = FLAGS_OF_JOIN) -> tuple[list[str], list[str]]:
    """The words for us, and those for the daemon."""
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


def wanted(words: Sequence[str], flags: Mapping[str, Any]) -> Wish:
    """What is asked for; a ConfigError in kubeadm's manner if it is not enough, or too much."""
    file, token = flags.get("discovery-file", ""), flags.get("discovery-token", flags.get("token", ""))
    if len(words) > 1 or bool(words) == bool(file):
        raise ConfigError("join needs the address of one API server, HOST:PORT, or --discovery-file")
    pins = parse_pins(flags.get("discovery-token-ca-cert-hash", ()))
    if words and not token:
        raise ConfigError("join needs --token to find the cluster with; `kubeadm token create` makes one")
    if words and not pins and not flags.get("discovery-token-unsafe-skip-ca-verification"):
        raise ConfigError(
            "using token-based discovery without caCertHashes can be unsafe. "
            "Set --discovery-token-unsafe-skip-ca-verification to continue, or give --discovery-token-ca-cert-hash"
        )
    bootstrap_token = flags.get("tls-bootstrap-token", flags.get("token", ""))
    if bootstrap_token:
        parse_token(bootstrap_token)
    return Wish(
        endpoint=_endpoint(words[0]) if words else "",
        discovery_file=file,
        token=parse_token(token) if words else None,
        bootstrap_token=bootstrap_token,
        pins=pins,
        patience_seconds=parse_seconds(flags.get("discovery-timeout", "5m")),
    )


def daemon_flags(daemon: Sequence[str], places: Places, settings: Effective) -> list[str]:
    """The daemon's command line: what the user said, then what kubeadm would have told a kubelet."""
    paths = {
        "kubeconfig": places.kubeconfig,
        "bootstrap-kubeconfig": places.bootstrap,
        "cert-dir": places.certificates,
    }
    added = [*daemon, *(f"--{name}={path}" for name, path in paths.items() if name not in settings.flags)]
    told = {**_KUBEADM, CLIENT_CA: f"--client-ca-file={places.authority}"}
    return [*added, *(flag for field, flag in told.items() if field not in settings.origins)]


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # a user whom the system does not know, and no HOME
        raise ConfigError("there is no home directory to keep credentials in; HOME can name one") from error


def _endpoint(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or "/" in text:
        raise ConfigError(f'"{text}" is no address of an API server; it should look like 192.0.2.1:6443')
    return text
