"""KubeletConfiguration v1beta1 and FakeKubeletConfiguration v1alpha1: every field, its type and its default."""

from collections.abc import Iterator
from functools import cache

from agent.adapters.settings.kinds import (
    BOOL,
    DURATION,
    FLOAT,
    FLUSH,
    INT32,
    INT64,
    LEVEL,
    QUANTITY,
    STRING,
    STRING_MAP,
    Field,
    Kind,
    Struct,
    listing,
    mapping,
    structs,
    text,
)
from agent.core.kubelet_data import ConfigField
from agent.core.kubelet_data.configuration import STRUCTS

KUBELET_API, FAKE_API = "kubelet.config.k8s.io/v1beta1", "fake-kubelet.dev/v1alpha1"
KUBELET_KIND, FAKE_KIND = "KubeletConfiguration", "FakeKubeletConfiguration"

_KINDS = {kind.go_type: kind for kind in (BOOL, DURATION, FLOAT, FLUSH, INT32, INT64, LEVEL, QUANTITY, STRING)}
_KINDS |= {"resource.QuantityValue": QUANTITY, "v1.Time": STRING}


def _struct(go_type: str) -> Struct:
    name = go_type.removeprefix("*")
    return Struct(
        name.rpartition(".")[2],
        {key: _field(field) for key, field in STRUCTS[name].items()},
        go_type=name,
        pointer=name != go_type,
    )


@cache
def _field(declared: ConfigField) -> Field | Struct:
    go_type, default, always = declared
    pointed = go_type.removeprefix("*")
    if pointed in STRUCTS:
        return _struct(go_type)
    if isinstance(default, tuple):  # a list with a default is as good as a pointer: an empty one is a value of its own
        return Field(_kind(go_type), list(default), pointer=True)
    return Field(_kind(pointed), default, pointer=pointed != go_type, always=always)


@cache
def _kind(go_type: str) -> Kind:
    """The kind of a Go type; one that is not known here is a string with a name of its own."""
    if go_type.startswith("map[string]"):
        return mapping(_kind(go_type.removeprefix("map[string]")))
    if not go_type.startswith("[]"):
        return _KINDS.get(go_type) or text(go_type)
    item = go_type.removeprefix("[]")
    if item not in STRUCTS:
        return listing(_kind(item))
    kinds = {key: _kind(kind.removeprefix("*")) for key, (kind, _, _) in STRUCTS[item].items()}
    return structs(item, kinds, tuple(key for key, (_, _, always) in STRUCTS[item].items() if always))


KUBELET = _struct("v1beta1.KubeletConfiguration")
_field.cache_clear()  # what they had to share, they share
_kind.cache_clear()

# What kubelet has no field for; each is a flag too.
FAKE = Struct(
    FAKE_KIND,
    {
        "sensorInterval": Field(DURATION, "1s", always=True),
        "capacity": Field(STRING_MAP),
        "extendedResources": Field(STRING_MAP),
        "capacityFrom": Field(STRING, "host"),
        "hostRoot": Field(STRING, "/"),
        "nodeIPType": Field(STRING, "InternalIP"),
        "kubeletVersion": Field(STRING),
        "onNodeDeleted": Field(STRING, "register"),
        "deregister": Field(BOOL),
        "pods": Field(STRING, "simulate"),
        "jobRunFor": Field(DURATION, "10s", always=True),
        "statusPage": Field(STRING, "loopback"),
        "strictFlags": Field(BOOL),
    },
)


def leaves(struct: Struct, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field of a struct with its dotted path, those of inner structs included."""
    for name, entry in struct.fields.items():
        if isinstance(entry, Struct):
            yield from leaves(entry, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", entry
