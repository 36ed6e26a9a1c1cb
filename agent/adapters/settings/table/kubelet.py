"""The flags of kubelet that have an effect here."""

from typing import get_args

from agent.adapters.settings.table.row import (
    CONFIGURATION,
    EVICTION,
    HEARTBEAT,
    IDENTITY,
    LOGGING,
    NODE_RESOURCES,
    SERVING,
    TLS,
    kubelet_flag,
)
from agent.core.config import AuthorizationMode, LoggingFormat, TLSVersion

KUBELET_ROWS = (
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
        "external: a cloud controller sets addresses and removes the start taint.",
        "NAME",
    ),
    kubelet_flag("provider-id", IDENTITY, "Identity of the machine at its provider.", "ID"),
    kubelet_flag(
        "enable-controller-attach-detach", IDENTITY, "Volumes are attached by the controller; the Node says so."
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
    kubelet_flag("max-pods", NODE_RESOURCES, "Most pods the Node offers to take."),
    kubelet_flag("pods-per-core", NODE_RESOURCES, "Most pods per CPU; 0 for no such limit."),
    kubelet_flag(
        "pod-manifest-path", NODE_RESOURCES, "A file, or a folder of files, that ask for static pods.", "PATH"
    ),
    kubelet_flag("file-check-frequency", NODE_RESOURCES, "How often these files are looked at."),
    kubelet_flag(
        "allowed-unsafe-sysctls",
        NODE_RESOURCES,
        "Sysctls, or patterns that end in *, that pods may set beside the safe ones.",
    ),
    kubelet_flag(
        "kube-reserved", NODE_RESOURCES, "Held back from pods for Kubernetes: cpu, memory, ephemeral-storage, pid."
    ),
    kubelet_flag(
        "system-reserved", NODE_RESOURCES, "Held back from pods for the system: cpu, memory, ephemeral-storage, pid."
    ),
    kubelet_flag(
        "reserved-cpus", NODE_RESOURCES, "CPUs that replace the cpu of both reservations, such as 0-3,8.", "CPUS"
    ),
    kubelet_flag("local-storage-capacity-isolation", NODE_RESOURCES, "Report ephemeral-storage as a resource."),
    kubelet_flag(
        "experimental-allocatable-ignore-eviction",
        NODE_RESOURCES,
        "Hard eviction thresholds do not come off allocatable.",
    ),
    kubelet_flag("eviction-hard", EVICTION, "Shortages that count as pressure, such as memory.available<100Mi."),
    kubelet_flag("eviction-soft", EVICTION, "Shortages that are borne for a grace period."),
    kubelet_flag("eviction-soft-grace-period", EVICTION, "The grace period of each soft threshold."),
    kubelet_flag("eviction-minimum-reclaim", EVICTION, "What must be free beyond a threshold before pressure ends."),
    kubelet_flag("eviction-pressure-transition-period", EVICTION, "How long pressure is reported after it ended."),
    kubelet_flag(
        "eviction-max-pod-grace-period", EVICTION, "Most seconds that an evicted pod may take below a soft threshold."
    ),
    kubelet_flag("port", SERVING, "Port of the kubelet's API (HTTPS)."),
    kubelet_flag("healthz-port", SERVING, "Port of /healthz; 0 for none."),
    kubelet_flag("healthz-bind-address", SERVING, "Address of /healthz."),
    kubelet_flag("enable-server", SERVING, "Serve the kubelet's API; false for nothing but /healthz."),
    kubelet_flag("address", SERVING, "Address of the kubelet's API; 0.0.0.0 for all."),
    kubelet_flag("read-only-port", SERVING, "Port of pods, figures and metrics for everybody (HTTP); 0 for none."),
    kubelet_flag("anonymous-auth", SERVING, "Serve those who do not say who they are."),
    kubelet_flag("authentication-token-webhook", SERVING, "Ask the API server who bears a token."),
    kubelet_flag("authentication-token-webhook-cache-ttl", SERVING, "How long that answer is kept."),
    kubelet_flag(
        "authorization-mode",
        SERVING,
        "Whether the API server is asked what somebody may do (Webhook), or nobody is (AlwaysAllow).",
        choices=get_args(AuthorizationMode),
    ),
    kubelet_flag("authorization-webhook-cache-authorized-ttl", SERVING, "How long a yes is kept."),
    kubelet_flag("authorization-webhook-cache-unauthorized-ttl", SERVING, "How long a no is kept."),
    kubelet_flag("enable-debugging-handlers", SERVING, "Serve /logs, /configz, /exec and the like."),
    kubelet_flag("cert-dir", TLS, "Where certificates are kept.", "DIR"),
    kubelet_flag(
        "client-ca-file",
        TLS,
        "Authorities whose client certificates are trusted; read again when it changes. Default: the cluster's CA, as "
        "--kubeconfig has it.",
        "FILE",
    ),
    kubelet_flag(
        "tls-cert-file", TLS, "Certificate to serve with; without one, one is made. Read again when it changes.", "FILE"
    ),
    kubelet_flag("tls-private-key-file", TLS, "Its key.", "FILE"),
    kubelet_flag(
        "tls-min-version",
        TLS,
        "Oldest TLS to speak: VersionTLS12 or VersionTLS13.",
        "VERSION",
        choices=tuple(filter(None, get_args(TLSVersion))),
    ),
    kubelet_flag("tls-cipher-suites", TLS, "Cipher suites of TLS 1.2 to offer, in IANA's names."),
    kubelet_flag("rotate-certificates", TLS, "Renew the client certificate."),
    kubelet_flag("rotate-server-certificates", TLS, "Get the serving certificate from the cluster."),
    kubelet_flag("v", LOGGING, "How much is logged."),
    kubelet_flag("vmodule", LOGGING, "How much is logged by files whose name matches."),
    kubelet_flag("logging-format", LOGGING, "text or json.", "FORMAT", choices=get_args(LoggingFormat)),
)
