"""The pods that a real kubelet and fake-kubelet are compared by."""

from dataclasses import dataclass, field
from typing import Any

Spec = dict[str, Any]
_IMAGE = "registry.k8s.io/pause:3.10"
_FOREVER = "1h"  # the fake runtime never ends a container; ours would


@dataclass(frozen=True, slots=True)
class PodCase:
    """One pod, by what is special about it."""

    id: str
    spec: Spec
    annotations: dict[str, str] = field(default_factory=dict)
    debugger: Spec | None = None  # a container that is added when the pod runs
    is_late: bool = False  # created when all others have been taken on: a kubelet need not admit two in their order


def container(name: str = "main", **fields: Any) -> Spec:
    """A container."""
    return {"name": name, "image": _IMAGE, **fields}


def _resources(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> Spec:
    return {"resources": {kind: value for kind, value in (("requests", requests), ("limits", limits)) if value}}


def _one(**fields: Any) -> Spec:
    return {"containers": [container(**fields)]}


_SMALL, _LARGE = {"cpu": "10m", "memory": "16Mi"}, {"cpu": "20m", "memory": "32Mi"}
_EXEC = {"exec": {"command": ["true"]}, "periodSeconds": 1}
_RUNS_ON = {"run-for.fake-kubelet.dev/first": _FOREVER}

_NOT_LINUX = {"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}
_GPU = {"example.com/gpu": "1"}

CASES = (
    PodCase("plain", _one()),
    PodCase("with a debugger", _one(), debugger=container("debugger", targetContainerName="main")),
    PodCase("two containers", {"containers": [container("a"), container("b")]}),
    PodCase("containers out of alphabetical order", {"containers": [container("z"), container("a")]}),
    PodCase("requests", _one(**_resources(_SMALL))),
    PodCase("requests and limits", _one(**_resources(_SMALL, _LARGE))),
    PodCase("guaranteed", _one(**_resources(_SMALL, _SMALL))),
    PodCase("limits only", _one(**_resources(None, _SMALL))),
    PodCase("cpu limit only", _one(**_resources(None, {"cpu": "20m"}))),
    PodCase("ephemeral storage", _one(**_resources({"ephemeral-storage": "1Mi"}, {"ephemeral-storage": "2Mi"}))),
    PodCase(
        "one with requests, one without",
        {"containers": [container("a", **_resources(_SMALL)), container("b")]},
    ),
    PodCase("odd quantities", _one(**_resources({"cpu": "0.0105", "memory": "16384Ki"}, {"memory": "33e6"}))),
    PodCase("init container that runs", {"initContainers": [container("first")], **_one()}, _RUNS_ON),
    PodCase(
        "two init containers, the first runs",
        {"initContainers": [container("first"), container("second")], **_one(**_resources(_SMALL))},
        _RUNS_ON,
    ),
    PodCase("sidecar", {"initContainers": [container("side", restartPolicy="Always")], **_one()}),
    PodCase(
        "two sidecars, one with a startup probe",
        {
            "initContainers": [
                container("one", restartPolicy="Always", startupProbe=_EXEC),
                container("two", restartPolicy="Always", **_resources(_SMALL)),
            ],
            **_one(),
        },
    ),
    PodCase(
        "sidecar before an init container that runs",
        {"initContainers": [container("side", restartPolicy="Always"), container("first")], **_one()},
        _RUNS_ON,
    ),
    PodCase("host network", {"hostNetwork": True, **_one()}),
    PodCase(
        "host network with a port", {"hostNetwork": True, **_one(ports=[{"containerPort": 18080, "hostPort": 18080}])}
    ),
    PodCase(
        "a host port that is taken",
        {"hostNetwork": True, **_one(ports=[{"containerPort": 18080, "hostPort": 18080}])},
        is_late=True,
    ),
    PodCase("container port", _one(ports=[{"name": "web", "containerPort": 80}])),
    PodCase("readiness probe", _one(readinessProbe=_EXEC)),
    PodCase("startup probe", _one(startupProbe=_EXEC)),
    PodCase("liveness probe", _one(livenessProbe=_EXEC)),
    PodCase("all probes", _one(readinessProbe=_EXEC, startupProbe=_EXEC, livenessProbe=_EXEC)),
    PodCase("readiness gate", {"readinessGates": [{"conditionType": "example.com/open"}], **_one()}),
    PodCase("never restarted", {"restartPolicy": "Never", **_one()}),
    PodCase("restarted on failure", {"restartPolicy": "OnFailure", **_one()}),
    PodCase(
        "volumes",
        {
            "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "other", "emptyDir": {}}],
            **_one(
                volumeMounts=[
                    {"name": "scratch", "mountPath": "/scratch"},
                    {"name": "other", "mountPath": "/other", "readOnly": True},
                ]
            ),
        },
    ),
    PodCase("service account token", {"automountServiceAccountToken": True, **_one()}),
    PodCase("users", {"securityContext": {"runAsUser": 1000, "runAsGroup": 2000, "fsGroup": 3000}, **_one()}),
    PodCase("strict groups", {"securityContext": {"supplementalGroupsPolicy": "Strict"}, **_one()}),
    PodCase("image without a tag", _one(image="busybox")),
    PodCase("image with a digest", _one(image=f"example.com:5000/a/b@sha256:{'ab' * 32}")),
    PodCase("critical", {"priorityClassName": "system-node-critical", **_one()}),
    PodCase("no grace", {"terminationGracePeriodSeconds": 0, **_one()}),
    PodCase("deadline that passes", {"activeDeadlineSeconds": 2, "terminationGracePeriodSeconds": 1, **_one()}),
    PodCase("wrong node selector", {"nodeSelector": {"example.com/there": "no"}, **_one()}),
    PodCase(
        "wrong node affinity",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}
                                ]
                            }
                        ]
                    }
                }
            },
            **_one(),
        },
    ),
    PodCase("too much cpu", _one(**_resources({"cpu": "1k"})), is_late=True),  # they tell what is used already
    PodCase("too much memory", _one(**_resources({"memory": "1Pi"})), is_late=True),
    PodCase("too much cpu and memory", _one(**_resources({"cpu": "1k", "memory": "1Pi"})), is_late=True),
    PodCase("an extended resource that nobody has", _one(**_resources(_GPU, _GPU))),
    PodCase("another operating system", {"os": {"name": "windows"}, **_one()}),
    PodCase("unsafe sysctl", {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]}, **_one()}),
)
