"""KubeletConfiguration v1beta1 and FakeKubeletConfiguration v1alpha1: every field, its type and its default."""

from functools import cache

from agent.adapters.settings.go_json import (
    BOOL,
    DURATION,
    FLOAT,
    FLUSH_FREQUENCY,
    INT32,
    INT64,
    LEVEL,
    QUANTITY,
    STRING,
    STRING_MAP,
    Field,
    GoType,
    Struct,
    list_type,
    map_type,
    string_type,
    struct_list_type,
)
from agent.core.kubelet_data import ConfigField
from agent.core.kubelet_data.configuration import STRUCTS

KUBELET_API, FAKE_API = "kubelet.config.k8s.io/v1beta1", "fake-kubelet.dev/v1alpha1"
KUBELET_KIND, FAKE_KIND = "KubeletConfiguration", "FakeKubeletConfiguration"

_TYPES = {
    go_type.name: go_type for go_type in (BOOL, DURATION, FLOAT, FLUSH_FREQUENCY, INT32, INT64, LEVEL, QUANTITY, STRING)
}
_TYPES |= {"resource.QuantityValue": QUANTITY, "v1.Time": STRING}


def _struct(name: str) -> Struct:
    pointed = name.removeprefix("*")
    return Struct(
        pointed.rpartition(".")[2],
        {key: _field(field) for key, field in STRUCTS[pointed].items()},
        go_type=pointed,
        pointer=pointed != name,
    )


@cache
def _field(declared: ConfigField) -> Field | Struct:
    name, default, always = declared
    pointed = name.removeprefix("*")
    if pointed in STRUCTS:
        return _struct(name)
    if isinstance(default, tuple):  # a list with a default is as good as a pointer: an empty one is a value of its own
        return Field(_go_type(name), list(default), pointer=True)
    return Field(_go_type(pointed), default, pointer=pointed != name, always=always)


@cache
def _go_type(name: str) -> GoType:
    """Return the Go type of this name; one that is not in the table is a string type."""
    if name.startswith("map[string]"):
        return map_type(_go_type(name.removeprefix("map[string]")))
    if not name.startswith("[]"):
        return _TYPES.get(name) or string_type(name)
    item = name.removeprefix("[]")
    if item not in STRUCTS:
        return list_type(_go_type(item))
    fields = {key: _go_type(field.removeprefix("*")) for key, (field, _, _) in STRUCTS[item].items()}
    return struct_list_type(item, fields, tuple(key for key, (_, _, always) in STRUCTS[item].items() if always))


KUBELET = _struct("v1beta1.KubeletConfiguration")
_field.cache_clear()  # equal fields and types are shared now; nobody needs the cache
_go_type.cache_clear()

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
        "podUsage": Field(STRING_MAP),
        "podCommands": Field(STRING, "understand"),
        "statusPage": Field(STRING, "loopback"),
        "strictFlags": Field(BOOL),
    },
)
