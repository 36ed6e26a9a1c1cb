"""The flags about the node itself: who it is, how often it speaks, what it offers, what it logs."""

from agent.adapters.settings.table.row import (
    CONFIGURATION,
    EVICTION,
    HEARTBEAT,
    IDENTITY,
    LOGGING,
    RESOURCES,
    kubelet_flag,
)

ROWS = (
    kubelet_flag("config", CONFIGURATION, "KubeletConfiguration to start from; flags win over it.", "FILE"),
    kubelet_flag("config-dir", CONFIGURATION, "Drop-ins, *.conf in lexical order, that win over --config.", "DIR"),
    kubelet_flag("feature-gates", CONFIGURATION, "Feature gates; those in files are kept."),
    kubelet_flag("help", CONFIGURATION, "Show this and exit."),
    kubelet_flag("version", CONFIGURATION, "Print the version of Kubernetes that is followed, and exit."),
    kubelet_flag(
        "kubeconfig",
        IDENTITY,
        "How to reach the API server, and as whom. Without it: the service account of the pod.",
        "FILE",
    ),
    kubelet_flag(
        "bootstrap-kubeconfig",
        IDENTITY,
        "Credentials to get a client certificate with, while --kubeconfig is missing.",
        "FILE",
    ),
    kubelet_flag("hostname-override", IDENTITY, "Node name. Default: the host's name.", "NAME"),
    kubelet_flag("node-ip", IDENTITY, "Address of the node, or one per family. Default: as kubelet.", "IP[,IP]"),
    kubelet_flag("node-labels", IDENTITY, "Labels to register the Node with."),
    kubelet_flag("register-node", IDENTITY, "Create the Node if it is missing."),
    kubelet_flag("register-with-taints", IDENTITY, "Taints to register the Node with."),
    kubelet_flag(
        "cloud-provider",
        IDENTITY,
        "external: a cloud controller tells addresses and takes the start taint off.",
        "NAME",
    ),
    kubelet_flag("provider-id", IDENTITY, "Identity of the machine at its provider.", "ID"),
    kubelet_flag(
        "enable-controller-attach-detach", IDENTITY, "Volumes are attached by the controller, which the Node tells."
    ),
    kubelet_flag("root-dir", IDENTITY, "Directory whose filesystem is the node's storage; nothing is written.", "DIR"),
    kubelet_flag(
        "machine-id-file",
        IDENTITY,
        "Files of the machine's ID, of which the first that can be read counts.",
        "FILE,...",
    ),
    kubelet_flag(
        "boot-id-file", IDENTITY, "Files of an ID that changes when the machine starts, as above.", "FILE,..."
    ),
    kubelet_flag("node-status-update-frequency", HEARTBEAT, "How often the status is computed."),
    kubelet_flag("event-qps", HEARTBEAT, "Most events a second, in the long run; 0 is 5."),
    kubelet_flag("event-burst", HEARTBEAT, "Most events at once; 0 is 10."),
    kubelet_flag("max-pods", RESOURCES, "Most pods the Node offers to take."),
    kubelet_flag("pods-per-core", RESOURCES, "Most pods per CPU; 0 for no such limit."),
    kubelet_flag("pod-manifest-path", RESOURCES, "A file, or a folder of files, that ask for static pods.", "PATH"),
    kubelet_flag("file-check-frequency", RESOURCES, "How often these files are looked at."),
    kubelet_flag(
        "allowed-unsafe-sysctls",
        RESOURCES,
        "Sysctls, or patterns that end in *, that pods may set beside the safe ones.",
    ),
    kubelet_flag(
        "kube-reserved", RESOURCES, "Held back from pods for Kubernetes: cpu, memory, ephemeral-storage, pid."
    ),
    kubelet_flag(
        "system-reserved", RESOURCES, "Held back from pods for the system: cpu, memory, ephemeral-storage, pid."
    ),
    kubelet_flag("reserved-cpus", RESOURCES, "CPUs that replace the cpu of both reservations, such as 0-3,8.", "CPUS"),
    kubelet_flag("local-storage-capacity-isolation", RESOURCES, "Tell ephemeral-storage as a resource."),
    kubelet_flag(
        "experimental-allocatable-ignore-eviction", RESOURCES, "Hard eviction thresholds do not come off allocatable."
    ),
    kubelet_flag("eviction-hard", EVICTION, "Shortages that count as pressure, such as memory.available<100Mi."),
    kubelet_flag("eviction-soft", EVICTION, "Shortages that are borne for a grace period."),
    kubelet_flag("eviction-soft-grace-period", EVICTION, "The grace period of each soft threshold."),
    kubelet_flag("eviction-minimum-reclaim", EVICTION, "What must be free beyond a threshold before pressure ends."),
    kubelet_flag("eviction-pressure-transition-period", EVICTION, "How long pressure is told after it ended."),
    kubelet_flag(
        "eviction-max-pod-grace-period", EVICTION, "Most seconds that an evicted pod may take below a soft threshold."
    ),
    kubelet_flag("v", LOGGING, "How much is logged."),
    kubelet_flag("vmodule", LOGGING, "How much is logged by files whose name matches."),
    kubelet_flag("logging-format", LOGGING, "text or json.", "FORMAT"),
)
