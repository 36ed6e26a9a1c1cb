"""The settings as a running daemon shows them to whoever may ask."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from agent.adapters.settings.defaults import without_file
from agent.adapters.settings.effective import Effective
from agent.adapters.settings.schema import FAKE, KUBELET, KUBELET_API, KUBELET_KIND
from agent.adapters.settings.structs import Document, printed, read
from agent.adapters.settings.table import FLAGS
from agent.core.node_view import Setting

_MASKED = "<masked>"  # kubelet's word, which it has for its log alone
_SECRET_FLAGS = {"storage-driver-password"}
_USER = re.compile(r"//[^/?#]*@")

_KIND_OF_FIELD = {flag.field: flag.kind for flag in FLAGS.values()}
_NOTHING = {"bool": "false", "version": "false", "duration": "0s"}  # how an empty default is told
_ITEMS: dict[str, Callable[[Any], Iterable[str]]] = {
    "thresholds": lambda pairs: (f"{signal}<{value}" for signal, value in sorted(pairs.items())),
    "headers": lambda named: (f"{name}:{value}" for name, values in sorted(named.items()) for value in values),
    "taints": lambda taints: (f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints),
    "vmodule": lambda items: (f"{item['filePattern']}={item['verbosity']}" for item in items),
    "reserved-memory": lambda nodes: sorted(f"{node['numaNode']}:{_text(node['limits'], 'map')}" for node in nodes),
}


class Zpages(NamedTuple):
    """What /configz and /flagz tell, which may be open to strangers: without secrets, where a kubelet shows them."""

    configz: Document
    flagz: dict[str, str]
    settings: tuple[Setting, ...] = ()  # those that are no defaults


EMPTY = Zpages({}, {})


def zpages(settings: Effective) -> Zpages:
    """Both pages of one start."""
    safe = _without_secrets(settings)
    return Zpages({"kubeletconfig": kubeletconfig(safe)}, _flagz(safe), tuple(_settings(safe)))


def kubeletconfig(settings: Effective) -> Document:
    """The effective KubeletConfiguration."""
    return {"kind": KUBELET_KIND, "apiVersion": KUBELET_API, **printed(KUBELET, settings.kubelet)}


def _without_secrets(settings: Effective) -> Effective:
    """What --manifest-url and its headers prove who we are with is masked, and the one password among the flags."""
    kubelet = settings.kubelet | {
        "staticPodURL": _USER.sub(f"//{_MASKED}@", settings.kubelet["staticPodURL"]),
        "staticPodURLHeader": {name: [_MASKED] for name in settings.kubelet["staticPodURLHeader"]},
    }
    flags = {name: _MASKED if name in _SECRET_FLAGS else value for name, value in settings.flags.items()}
    return replace(settings, kubelet=kubelet, flags=flags)


def _flagz(settings: Effective) -> dict[str, str]:
    """Each flag that a kubelet has, as it was given, or its default."""
    untouched, told = without_file(), {}
    for name, flag in FLAGS.items():
        if not flag.is_kubelets:
            continue
        if not flag.field:
            value = settings.flags.get(name, flag.default)
        else:
            given = settings.origins.get(flag.field) == f"--{name}"
            value = read(settings.kubelet if given else untouched, flag.field)
        told[name] = _text(value, flag.kind)
    return told


def _settings(settings: Effective) -> Iterator[Setting]:
    """What the page shows."""
    for path, origin in settings.origins.items():
        document = settings.fake if path in FAKE.fields else settings.kubelet
        yield Setting(path, _text(read(document, path), _KIND_OF_FIELD.get(path, "")), origin)
    for name, given in settings.flags.items():
        yield Setting(f"--{name}", _text(given, FLAGS[name].kind), "command line")


def _text(value: Any, kind: str) -> str:
    """As pflag prints a value of a kind."""
    if kind in _ITEMS:
        return ",".join(_ITEMS[kind](value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{key}={_text(item, '')}" for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(str, value))}]"
    return _NOTHING.get(kind, "") if value in (None, "") else str(value)
