"""One object of each kind that an API server tells a node of, with a bit of everything in it."""

from typing import Any

NAME = "n1"
_AT = "2026-01-02T03:00:00Z"


def _metadata(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": "41",
        "creationTimestamp": _AT,
        "labels": {"kubernetes.io/os": "linux", "zone": "a"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": NAME, "uid": f"uid-{NAME}"}],
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}}],
        **fields,
    }


def _condition(kind: str, status: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": _AT,
        "lastTransitionTime": _AT,
        "lastProbeTime": None,
        "reason": "Because",
        "message": "words",
    }


NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": _metadata(NAME),
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "podCIDRs": ["10.0.0.0/24", "2001:db8::/64"],
        "providerID": "x://y",
        "unschedulable": True,
        "taints": [{"key": "k", "value": "5", "effect": "NoExecute", "timeAdded": _AT}],
    },
    "status": {
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": NAME}],
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/x": "1k", "hugepages-2Mi": "0"},
        "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110", "example.com/x": "1e3"},
        "conditions": [_condition("MemoryPressure", "False"), _condition("Other", "True"), _condition("Ready", "True")],
        "nodeInfo": {"bootID": "b", "machineID": "m", "kernelVersion": "6.1", "swap": {"capacity": 5}},
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": [{"names": ["a"], "sizeBytes": 5}],
        "volumesInUse": ["v"],
        "declaredFeatures": ["x"],
    },
}
LEASE: dict[str, Any] = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": _metadata(NAME, namespace="kube-node-lease"),
    "spec": {
        "holderIdentity": NAME,
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-02T03:04:05.000000Z",
        "acquireTime": "2026-01-02T03:04:05.000000Z",
        "leaseTransitions": 1,
    },
}
CSINODE: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSINode",
    "metadata": _metadata(NAME),
    "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["k"]}]},
}
EVENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": _metadata("n1.1", namespace="default"),
    "count": 5,
    "firstTimestamp": _AT,
    "lastTimestamp": _AT,
    "involvedObject": {"kind": "Node", "name": NAME},
}


def _running(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": "pause:1",
        "imageID": "pause@sha256:1",
        "containerID": "fake://1",
        "ready": True,
        "started": True,
        "restartCount": 2,
        "state": {"running": {"startedAt": _AT}},
        "lastState": {
            "terminated": {
                "exitCode": 1,
                "reason": "Error",
                "startedAt": _AT,
                "finishedAt": _AT,
                "containerID": "fake://0",
            }
        },
        "resources": {"requests": {"cpu": "1"}},
        "allocatedResources": {"cpu": "1"},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }


_AMOUNTS = {"cpu": "500m", "memory": "64Mi", "example.com/x": "1"}
_CONTAINER: dict[str, Any] = {
    "name": "main",
    "image": "pause:1",
    "imagePullPolicy": "Always",
    "resources": {"requests": _AMOUNTS, "limits": {**_AMOUNTS, "cpu": "1e0"}},
    "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}],
    "startupProbe": {"initialDelaySeconds": 5},
    "readinessProbe": {"initialDelaySeconds": 5},
    "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
    "command": ["sh", "-c"],
    "args": ['echo "$A" $(B); cat /v/cpu /v/labels; sleep 5; exit 3'],
    "env": [
        {"name": "A", "value": "B"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a']"}}},
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ],
}
_DOWNWARD: dict[str, Any] = {
    "items": [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "requests.cpu", "divisor": "1"}},
    ]
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": _metadata(
        "p1",
        namespace="ns",
        generation=3,
        annotations={
            "fake-kubelet.dev/run-for": "1s",
            "fake-kubelet.dev/exit-code": "1",
            "fake-kubelet.dev/stop-after": "5s",
            "run-for.fake-kubelet.dev/main": "1h",
        },
        deletionTimestamp=_AT,
        deletionGracePeriodSeconds=30,
    ),
    "spec": {
        "nodeName": NAME,
        "containers": [_CONTAINER],
        "initContainers": [{**_CONTAINER, "name": "side", "restartPolicy": "Always"}, {"name": "first", "image": "a"}],
        "ephemeralContainers": [{"name": "debugger", "image": "a", "targetContainerName": "main"}],
        "nodeSelector": {"zone": "a"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["5"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": [NAME]}],
                        }
                    ]
                }
            }
        },
        "tolerations": [{"key": "k", "operator": "Lt", "value": "7", "effect": "NoExecute", "tolerationSeconds": 5}],
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"cpu": "2"}},
        "priority": 5,
        "restartPolicy": "Always",
        "activeDeadlineSeconds": 600,
        "terminationGracePeriodSeconds": 30,
        "hostNetwork": False,
        "securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}], "runAsUser": 5},
        "os": {"name": "linux"},
        "readinessGates": [{"conditionType": "x"}],
        "volumes": [
            {"name": "v", "downwardAPI": _DOWNWARD},
            {"name": "w", "projected": {"sources": [{"downwardAPI": _DOWNWARD}]}},
        ],
        "serviceAccountName": "default",
    },
    "status": {
        "phase": "Running",
        "reason": "r",
        "message": "m",
        "conditions": [_condition("Ready", "True"), _condition("x", "False")],
        "containerStatuses": [_running("main")],
        "initContainerStatuses": [_running("side"), {**_running("first"), "state": {"waiting": {"reason": "r"}}}],
        "ephemeralContainerStatuses": [_running("debugger")],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": "10.0.0.2",
        "podIPs": [{"ip": "10.0.0.2"}],
        "startTime": _AT,
        "qosClass": "Burstable",
        "observedGeneration": 2,
        "resources": {"requests": {"cpu": "1"}},
        "allocatedResources": {"cpu": "1"},
    },
}
CSR: dict[str, Any] = {
    "apiVersion": "certificates.k8s.io/v1",
    "kind": "CertificateSigningRequest",
    "metadata": _metadata("csr-1"),
    "spec": {"request": "YWJj", "signerName": "kubernetes.io/kubelet-serving", "usages": ["digital signature"]},
    "status": {"conditions": [_condition("Approved", "True")], "certificate": "YWJj"},
}
TOKEN_REVIEW: dict[str, Any] = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenReview",
    "metadata": {},
    "status": {
        "authenticated": True,
        "error": "",
        "user": {"username": "u", "uid": "1", "groups": ["g", "h"], "extra": {"k": ["v"]}},
        "audiences": ["a"],
    },
}
ACCESS_REVIEW: dict[str, Any] = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview",
    "metadata": {},
    "status": {"allowed": True, "denied": False, "reason": "r", "evaluationError": ""},
}
STATUS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Status",
    "metadata": {},
    "status": "Failure",
    "message": "words",
    "reason": "Conflict",
    "code": 409,
    "details": {"retryAfterSeconds": 1},
}


def page(*items: dict[str, Any]) -> dict[str, Any]:
    """A list of objects."""
    return {
        "kind": "List",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "50", "continue": ""},
        "items": [*items],
    }


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """A line of a watch."""
    return {"type": kind, "object": obj}
