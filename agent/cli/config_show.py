"""`fake-kubelet config show`: the effective settings as YAML or JSON, with the origin of each value."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from agent.adapters.settings.defaults import derived_origins
from agent.adapters.settings.effective import Effective
from agent.adapters.settings.go_json import Document, Struct, encode
from agent.adapters.settings.schema import FAKE, FAKE_API, FAKE_KIND, KUBELET, KUBELET_API, KUBELET_KIND
from agent.adapters.settings.zpages import kubeletconfig

_CLUSTER_CA = "client certificates: of the cluster's CA, if --kubeconfig or the service account names one"


def settings_json(settings: Effective) -> str:
    """Return one object: kubelet's settings as /configz has them, our own, the flags without a field, and origins."""
    shown = {
        "kubeletconfig": kubeletconfig(settings),
        "fakekubeletconfig": encode(FAKE, settings.fake) | {"apiVersion": FAKE_API, "kind": FAKE_KIND},
        "flags": settings.flags,
        "origins": _origins(settings),
    }
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def settings_yaml(settings: Effective) -> str:
    """Return two documents that `--config` takes; a comment names the origin of each value that is no default."""
    lines = [f"apiVersion: {KUBELET_API}", f"kind: {KUBELET_KIND}"]
    lines += _lines(KUBELET, encode(KUBELET, settings.kubelet), _origins(settings))
    lines += ["---", f"apiVersion: {FAKE_API}", f"kind: {FAKE_KIND}"]
    lines += _lines(FAKE, encode(FAKE, settings.fake), settings.origins)
    if settings.flags:
        lines += ["# Flags that have no field:"]
        lines += [f"#   --{name}={_text(value)}" for name, value in settings.flags.items()]
    return "\n".join(lines) + "\n"


def _origins(settings: Effective) -> dict[str, str]:
    origins = settings.origins | derived_origins(settings.kubelet, settings.origins)
    if settings.trusts_cluster_ca:
        origins["authentication.x509"] = _CLUSTER_CA
    return origins


def _lines(struct: Struct, document: Document, origins: dict[str, str], prefix: str = "") -> Iterator[str]:
    indent = "  " * prefix.count(".")
    for name, value in document.items():
        field, path = struct.fields[name], f"{prefix}{name}"
        if isinstance(field, Struct) and value:
            yield f"{indent}{name}:"
            yield from _lines(field, value, origins, f"{path}.")
        else:
            first, *rest = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=1000).splitlines()
            comment = f"  # {origins[path]}" if path in origins else ""
            yield f"{indent}{first}{comment}"
            yield from (f"{indent}{line}" for line in rest)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={text}" for key, text in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)
