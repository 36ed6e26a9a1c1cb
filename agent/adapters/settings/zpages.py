"""The settings as a running daemon serves them: /configz, /flagz, and the list on the status page."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from agent.adapters.settings.defaults import with_file, without_file
from agent.adapters.settings.effective import Effective
from agent.adapters.settings.go_json import Document, encode, get_path
from agent.adapters.settings.schema import FAKE, KUBELET, KUBELET_API, KUBELET_KIND
from agent.adapters.settings.table import FLAGS
from agent.adapters.settings.table.ours import LEGACY_FLAG_DEFAULTS
from agent.core.node_view import Setting

_MASKED = "<masked>"  # kubelet's word, which it uses in its log alone
_SECRET_FLAGS = {"storage-driver-password"}
_USER = re.compile(r"//[^/?#]*@")

_KIND_OF_FIELD = {flag.field: flag.kind for flag in FLAGS.values()}
_EMPTY_VALUES = {"bool": "false", "version": "false", "duration": "0s"}  # how pflag prints an empty default
_ITEMS: dict[str, Callable[[Any], Iterable[str]]] = {
    "thresholds": lambda pairs: (f"{signal}<{value}" for signal, value in sorted(pairs.items())),
    "headers": lambda named: (f"{name}:{value}" for name, values in sorted(named.items()) for value in values),
    "taints": lambda taints: (f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints),
    "vmodule": lambda items: (f"{item['filePattern']}={item['verbosity']}" for item in items),
    "reserved-memory": lambda nodes: sorted(f"{node['numaNode']}:{_text(node['limits'], 'map')}" for node in nodes),
}


class Zpages(NamedTuple):
    """What /configz and /flagz serve. Anonymous callers may read it: it has no secrets, where a kubelet shows them."""

    configz: Document
    flagz: dict[str, str]
    settings: tuple[Setting, ...] = ()  # those that are no defaults


EMPTY = Zpages({}, {})


def zpages(settings: Effective) -> Zpages:
    """Return the pages of these settings."""
    safe = _without_secrets(settings)
    return Zpages({"kubeletconfig": kubeletconfig(safe)}, _flagz(safe), tuple(_settings(safe)))


def kubeletconfig(settings: Effective) -> Document:
    """Return the effective KubeletConfiguration as Go encodes it."""
    return {"kind": KUBELET_KIND, "apiVersion": KUBELET_API, **encode(KUBELET, settings.kubelet)}


def _without_secrets(settings: Effective) -> Effective:
    """Mask the credentials in --manifest-url and its headers, and the one password among the flags."""
    kubelet = settings.kubelet | {
        "staticPodURL": _USER.sub(f"//{_MASKED}@", settings.kubelet["staticPodURL"]),
        "staticPodURLHeader": {name: [_MASKED] for name in settings.kubelet["staticPodURLHeader"]},
    }
    flags = {name: _MASKED if name in _SECRET_FLAGS else value for name, value in settings.flags.items()}
    return replace(settings, kubelet=kubelet, flags=flags)


def _flagz(settings: Effective) -> dict[str, str]:
    """Return each flag that a kubelet has: its value if it was set, else its default."""
    unset = without_file() if settings.flags.get(LEGACY_FLAG_DEFAULTS) else with_file({}, {})
    values = {}
    for name, flag in FLAGS.items():
        if not flag.is_kubelets:
            continue
        if not flag.field:
            value = settings.flags.get(name, flag.default)
        else:
            is_set = settings.origins.get(flag.field) == f"--{name}"
            value = get_path(settings.kubelet if is_set else unset, flag.field)
        values[name] = _text(value, flag.kind)
    return values


def _settings(settings: Effective) -> Iterator[Setting]:
    """Yield the settings that are no defaults, for the status page."""
    for path, origin in settings.origins.items():
        document = settings.fake if path in FAKE.fields else settings.kubelet
        yield Setting(path, _text(get_path(document, path), _KIND_OF_FIELD.get(path, "")), origin)
    for name, value in settings.flags.items():
        yield Setting(f"--{name}", _text(value, FLAGS[name].kind), "command line")


def _text(value: Any, kind: str) -> str:
    """Return a value as pflag prints it."""
    if kind in _ITEMS:
        return ",".join(_ITEMS[kind](value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{key}={_text(item, '')}" for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(str, value))}]"
    return _EMPTY_VALUES.get(kind, "") if value in (None, "") else str(value)
