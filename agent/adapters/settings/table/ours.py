"""The flags that kubelet lacks."""

from agent.adapters.settings.table.row import OURS, Flag

ROWS = (
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
        "How often the host is looked at; from 10s on pressure is told as late as by a kubelet.",
        field="sensorInterval",
    ),
    Flag("capacity", "map", OURS, "Capacity to tell instead of what the host has.", field="capacity"),
    Flag("extended-resources", "map", OURS, "Resources to add, such as nvidia.com/gpu=8.", field="extendedResources"),
    Flag(
        "capacity-from",
        "string",
        OURS,
        "host, or cgroup for the limits of our own cgroup.",
        field="capacityFrom",
        metavar="host|cgroup",
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
        "kubelet-version",
        "string",
        OURS,
        "Version the Node tells as its kubelet's.",
        field="kubeletVersion",
        metavar="VERSION",
    ),
    Flag(
        "on-node-deleted",
        "string",
        OURS,
        "register the Node again, stay idle as a kubelet does, or exit.",
        field="onNodeDeleted",
        metavar="register|idle|exit",
    ),
    Flag("deregister", "bool", OURS, "Delete Node and Lease at the end, where that is allowed.", field="deregister"),
    Flag("strict-flags", "bool", OURS, "Refuse flags that kubelet has removed.", field="strictFlags"),
)
