"""The settings as a running daemon shows them to whoever may ask."""

from collections.abc import Iterator
from typing import NamedTuple

from agent.adapters.settings.defaults import without_file
from agent.adapters.settings.effective import Effective
from agent.adapters.settings.schema import FAKE, KUBELET, KUBELET_API, KUBELET_KIND
from agent.adapters.settings.structs import Document, printed, read
from agent.adapters.settings.table import FLAGS
from agent.core.portrait import Setting


class Zpages(NamedTuple):
    """What /configz and /flagz tell. No setting of a kubelet is a secret; those are in files of their own."""

    configz: Document
    flagz: dict[str, str]
    settings: tuple[Setting, ...] = ()  # those that are no defaults


EMPTY = Zpages({}, {})


def zpages(settings: Effective) -> Zpages:
    """Both pages of one start."""
    return Zpages({"kubeletconfig": kubeletconfig(settings)}, _flagz(settings), tuple(_settings(settings)))


def kubeletconfig(settings: Effective) -> Document:
    """The effective KubeletConfiguration."""
    return {"kind": KUBELET_KIND, "apiVersion": KUBELET_API, **printed(KUBELET, settings.kubelet)}


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
        told[name] = _text(value)
    return told


def _settings(settings: Effective) -> Iterator[Setting]:
    """What the page shows; headers for --manifest-url may hold a secret."""
    for path, origin in settings.origins.items():
        document = settings.fake if path in FAKE.fields else settings.kubelet
        value = "<masked>" if path == "staticPodURLHeader" else _text(read(document, path))
        yield Setting(path, value, origin)
    for name, given in settings.flags.items():
        yield Setting(f"--{name}", _text(given), "command line")


def _text(value: object) -> str:
    """As pflag prints values."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{key}={item}" for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return f"[{','.join(map(str, value))}]"
    return "" if value is None else str(value)
