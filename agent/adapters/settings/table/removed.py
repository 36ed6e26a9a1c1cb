"""Flags that live on in people's unit files, and the version of Kubernetes that no longer has them."""

from agent.adapters.settings.table.row import REMOVED, Flag

_VERSIONS = {
    "1.10": (("require-kubeconfig", "bool"),),
    "1.12": (("cadvisor-port", "int32"),),
    "1.15": (("allow-privileged", "bool"),),
    "1.21": (("enable-cadvisor-json-endpoints", "bool"),),
    "1.23": (("experimental-bootstrap-kubeconfig", "string"), ("seccomp-profile-root", "string")),
    "1.24": (
        ("cni-bin-dir", "string"),
        ("cni-cache-dir", "string"),
        ("cni-conf-dir", "string"),
        ("docker", "string"),
        ("docker-endpoint", "string"),
        ("docker-env-metadata-whitelist", "string"),
        ("docker-only", "bool"),
        ("docker-root", "string"),
        ("docker-tls", "bool"),
        ("docker-tls-ca", "string"),
        ("docker-tls-cert", "string"),
        ("docker-tls-key", "string"),
        ("dynamic-config-dir", "string"),
        ("experimental-check-node-capabilities-before-mount", "bool"),
        ("experimental-dockershim-root-directory", "string"),
        ("experimental-logging-sanitization", "bool"),
        ("image-pull-progress-deadline", "duration"),
        ("network-plugin", "string"),
        ("network-plugin-mtu", "int32"),
        ("non-masquerade-cidr", "string"),
    ),
    "1.25": (("experimental-kernel-memcg-notification", "bool"),),
    "1.26": (
        ("add-dir-header", "bool"),
        ("alsologtostderr", "bool"),
        ("log-backtrace-at", "string"),
        ("log-dir", "string"),
        ("log-file", "string"),
        ("log-file-max-size", "int64"),
        ("logtostderr", "bool"),
        ("one-output", "bool"),
        ("skip-headers", "bool"),
        ("skip-log-headers", "bool"),
        ("stderrthreshold", "string"),
    ),
    "1.27": (("container-runtime", "string"), ("master-service-namespace", "string")),
    "1.30": (("azure-container-registry-config", "string"),),
    "1.31": (
        ("iptables-drop-bit", "int32"),
        ("iptables-masquerade-bit", "int32"),
        ("keep-terminated-pod-volumes", "bool"),
    ),
    "1.34": (("cloud-config", "string"), ("register-schedulable", "bool")),
    "1.35": (("pod-infra-container-image", "string"),),
}

REMOVED_ROWS = tuple(
    Flag(name, kind, REMOVED, removed=version) for version, flags in _VERSIONS.items() for name, kind in flags
)

RENAMED = {"experimental-bootstrap-kubeconfig": "bootstrap-kubeconfig"}
"""Removed flags that another flag replaces; a command line that has them would not join the cluster otherwise."""

IN_TREE_CLOUD_PROVIDERS = {
    "openstack": "1.26",
    "aws": "1.27",
    "azure": "1.31",
    "gce": "1.31",
    "vsphere": "1.31",
}
"""Values of --cloud-provider that are gone, with the version of Kubernetes that no longer has them."""
