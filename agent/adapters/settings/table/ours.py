"""The flags that kubelet lacks."""

from typing import get_args

from agent.adapters.settings.table.row import OURS, Flag
from agent.core.config import CapacityFrom, NodeIPType, OnNodeDeleted, PodCommands, PodsMode, StatusPage

LEGACY_FLAG_DEFAULTS = "legacy-flag-defaults"

OWN_ROWS = (
    Flag(
        "node-status-report-frequency",
        "duration",
        OURS,
        "How often an unchanged status is sent.",
        field="nodeStatusReportFrequency",
    ),
    Flag(
        "node-lease-duration-seconds",
        "int32",
        OURS,
        "Lease duration; it is renewed four times as often.",
        field="nodeLeaseDurationSeconds",
    ),
    Flag(
        "sensor-interval",
        "duration",
        OURS,
        "How often the host is read; from 10s on pressure is reported as late as by a kubelet.",
        field="sensorInterval",
    ),
    Flag("capacity", "map", OURS, "Capacity to report instead of what the host has.", field="capacity"),
    Flag("extended-resources", "map", OURS, "Resources to add, such as nvidia.com/gpu=8.", field="extendedResources"),
    Flag(
        "capacity-from",
        "string",
        OURS,
        "host, or cgroup for the limits of our own cgroup.",
        field="capacityFrom",
        choices=get_args(CapacityFrom),
    ),
    Flag(
        "host-root",
        "string",
        OURS,
        "Where the host's root is mounted, in a container.",
        field="hostRoot",
        metavar="DIR",
    ),
    Flag(
        "node-ip-type",
        "string",
        OURS,
        "Type of the address: ExternalIP for a node that others have no route to, such as a pod.",
        field="nodeIPType",
        choices=get_args(NodeIPType),
    ),
    Flag(
        "kubelet-version",
        "string",
        OURS,
        "Version the Node reports as its kubelet's.",
        field="kubeletVersion",
        metavar="VERSION",
    ),
    Flag(
        "on-node-deleted",
        "string",
        OURS,
        "register the Node again, stay idle as a kubelet does, or exit.",
        field="onNodeDeleted",
        choices=get_args(OnNodeDeleted),
    ),
    Flag("deregister", "bool", OURS, "Delete Node and Lease at the end, where that is allowed.", field="deregister"),
    Flag(
        "pods",
        "string",
        OURS,
        "simulate the pods that are bound to the node, refuse them, or ignore them.",
        field="pods",
        choices=get_args(PodsMode),
    ),
    Flag("job-run-for", "duration", OURS, "How long the containers of a Job's pod seem to run.", field="jobRunFor"),
    Flag(
        "pod-usage",
        "map",
        OURS,
        "What containers use unless their pod says it, such as cpu=60% of request,memory=80% of limit.",
        field="podUsage",
    ),
    Flag(
        "pod-commands",
        "string",
        OURS,
        "understand plain commands (sleep, exit, echo, and sh -c of these), or ignore all: how long a container runs.",
        field="podCommands",
        choices=get_args(PodCommands),
    ),
    Flag(
        "status-page",
        "string",
        OURS,
        "Who sees the page on the healthz port, and why a check fails: loopback clients, all clients, or none.",
        field="statusPage",
        choices=get_args(StatusPage),
    ),
    Flag("strict-flags", "bool", OURS, "Refuse flags that kubelet has removed.", field="strictFlags"),
    Flag(
        LEGACY_FLAG_DEFAULTS,
        "bool",
        OURS,
        "As a kubelet without --config: serve everybody, on port 10255 too, evict nothing, and trust no client CA.",
    ),
)
