"""Config files and drop-ins that a kubelet refuses, each with the words by which a person finds the mistake."""

from tests.parity.config_mistakes import Mistake

FIELDS = (
    Mistake("maxPods: many", "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"),
    Mistake(
        "maxPods: 1.5", "cannot unmarshal number 1.5 into Go struct field KubeletConfiguration.maxPods of type int32"
    ),
    Mistake(
        "maxPods: 99999999999", "cannot unmarshal number 99999999999 into Go struct field KubeletConfiguration.maxPods"
    ),
    Mistake("maxPods: [1]", "cannot unmarshal array into Go struct field KubeletConfiguration.maxPods of type int32"),
    Mistake("maxPods: -1", "maxPods (--max-pods) -1 must not be a negative number"),
    Mistake(
        "registerNode: 1", "cannot unmarshal number into Go struct field KubeletConfiguration.registerNode of type bool"
    ),
    Mistake(
        "clusterDomain: 1",
        "cannot unmarshal number into Go struct field KubeletConfiguration.clusterDomain of type string",
    ),
    Mistake(
        "clusterDNS: 10.0.0.10",
        "cannot unmarshal string into Go struct field KubeletConfiguration.clusterDNS of type []string",
    ),
    Mistake(
        "clusterDNS: [1]", "cannot unmarshal number into Go struct field KubeletConfiguration.clusterDNS of type string"
    ),
    Mistake(
        "kubeReserved: {cpu: 1}",
        "cannot unmarshal number into Go struct field KubeletConfiguration.kubeReserved of type string",
    ),
    Mistake(
        "evictionHard: [a]",
        "cannot unmarshal array into Go struct field KubeletConfiguration.evictionHard of type map[string]string",
    ),
    Mistake(
        "featureGates: {KubeletPSI: 'true'}",
        "cannot unmarshal string into Go struct field KubeletConfiguration.featureGates of type bool",
    ),
    Mistake("featureGates: {Nonsense: true}", "unrecognized feature gate: Nonsense"),
    Mistake("featureGates: {KubeletPSI: false}", "cannot set feature gate KubeletPSI to false"),
    Mistake(
        "syncFrequency: 10",
        "cannot unmarshal number into Go struct field KubeletConfiguration.syncFrequency of type string",
    ),
    Mistake("syncFrequency: '10'", 'time: missing unit in duration "10"'),
    Mistake(
        "authentication: []",
        "Go struct field KubeletConfiguration.authentication of type v1beta1.KubeletAuthentication",
    ),
    Mistake(
        "authentication: {anonymous: {enabled: 'no'}}",
        "KubeletAnonymousAuthentication.authentication.anonymous.enabled of type bool",
    ),
    Mistake("logging: {verbosity: -1}", "LoggingConfiguration.logging.verbosity of type v1.VerbosityLevel"),
    Mistake("logging: {format: xml}", 'logging.format: Invalid value: "xml": Unsupported log format'),
    Mistake(
        "logging: {vmodule: [{filePattern: '', verbosity: 1}]}",
        "logging.vmodule[0]: Required value: File pattern must not be empty",
    ),
    Mistake("registerWithTaints: [{key: 1}]", "Taint.registerWithTaints.key of type string"),
    Mistake("registerWithTaints: [{key: a, effect: Never}]", "invalid taint: "),
    Mistake(
        "registerWithTaints: [{key: a, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}]",
        "taint.TimeAdded is not nil",
    ),
    Mistake(
        "memorySwap: {swapBehavior: Always}",
        'memorySwap.swapBehavior "Always" must be one of: "", "LimitedSwap" or "NoSwap"',
    ),
    Mistake("shutdownGracePeriod: 500ms", "shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec"),
    Mistake(
        "shutdownGracePeriodCriticalPods: 10s",
        "shutdownGracePeriodCriticalPods {10s} must be <= shutdownGracePeriod {0s}",
    ),
    Mistake(
        "shutdownGracePeriod: 10s\nshutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 1}]",
        "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
    ),
    Mistake("nodeLeaseDurationSeconds: -1", "nodeLeaseDurationSeconds must be greater than 0"),
    Mistake("reservedMemory: [{numaNode: 0, limits: {memory: 1K}}]", "unable to parse quantity's suffix"),
    Mistake("reservedMemory: [{numaNode: 0, limits: {memory: 0}}]", "reserved memory may not be zero for NUMA node 0"),
    Mistake(
        "crashLoopBackOff: {maxContainerRestartPeriod: 10m}",
        "CrashLoopBackOff.MaxContainerRestartPeriod (got: 600 seconds) must be set between 1s and 300s",
    ),
    Mistake(
        "containerLogMonitorInterval: 1s",
        "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
    ),
    Mistake("containerLogMaxWorkers: 0", "containerLogMaxWorkers must be greater than or equal to 1"),
    Mistake("podLogsDir: /var//log", 'pod logs path "/var//log" must be normalized'),
    Mistake(
        "memoryThrottlingFactor: 2", "memoryThrottlingFactor 2 must be greater than 0 and less than or equal to 1.0"
    ),
    Mistake(
        "memoryReservationPolicy: Some",
        'option "Some" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"',
    ),
    Mistake("maxParallelImagePulls: 0", "maxParallelImagePulls 0 must be a positive number"),
    Mistake(
        "maxParallelImagePulls: 3\nserializeImagePulls: true",
        "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls",
    ),
    Mistake(
        "imagePullCredentialsVerificationPolicy: Maybe",
        'option "Maybe" specified for imagePullCredentialsVerificationPolicy',
    ),
    Mistake("userNamespaces: {idsPerPod: 1}", "userNamespaces.idsPerPod must not be less than 65536"),
    Mistake("showHiddenMetricsForVersion: '1.2'", "1.35"),
    Mistake(
        "tracing: {samplingRatePerMillion: -1}",
        "tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive",
    ),
    Mistake(
        "enableSystemLogQuery: true\nenableSystemLogHandler: false",
        "enableSystemLogHandler is required for enableSystemLogQuery",
    ),
    Mistake(
        "imageMinimumGCAge: 1h\nimageMaximumGCAge: 1m",
        "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 1h0m0s",
    ),
    Mistake(
        "enforceNodeAllocatable: [none, pods]\ncgroupsPerQOS: true",
        'may not contain additional enforcements when "none" is specified',
    ),
    Mistake(
        "enforceNodeAllocatable: [system-reserved]\ncgroupsPerQOS: true",
        "systemReservedCgroup (--system-reserved-cgroup) must be specified",
    ),
    Mistake(
        "enforceNodeAllocatable: [pods]",
        'cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in',
    ),
    Mistake(
        "evictionSoft: {memory.available: 1Gi}",
        "grace period must be specified for the soft eviction threshold memory.available",
    ),
    Mistake("a: [", "yaml: line"),
    Mistake("a: b: c", "mapping values are not allowed in this context"),
    Mistake("tlsCurvePreferences: [29, 29]", "duplicate curve preference 29"),
    Mistake("tlsCurvePreferences: [0]", "curve preference 0 is out of range"),
    Mistake("authorization: {mode: Never}", "unknown authorization mode Never"),
)

WHOLE_FILES = (
    Mistake("", "was empty"),
    Mistake("{}", "Object 'Kind' is missing"),
    Mistake("kind: KubeletConfiguration\n", "Object 'apiVersion' is missing"),
    Mistake("apiVersion: v1\nkind: Pod\n", 'no kind "Pod" is registered for version "v1"'),
    Mistake(
        "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
        'no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"',
    ),
    Mistake("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: CredentialProviderConfig\n", "CredentialProviderConfig"),
    Mistake("- a\n- b\n", "couldn't get version/kind"),
)

DROP_INS = (
    Mistake("", "was empty"),
    Mistake("maxPods: 1\n", "Object 'Kind' is missing"),
    Mistake("{}\n", "Object 'Kind' is missing"),
    Mistake("apiVersion: v1\nkind: Pod\n", "Pod"),
    Mistake(
        "{header}maxPods: many\n",
        "cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32",
    ),
    Mistake("{header}syncFrequency: '10'\n", 'time: missing unit in duration "10"'),
    Mistake("{header}maxPods: -1\n", "maxPods (--max-pods) -1 must not be a negative number"),
    Mistake("{header}featureGates: {Nonsense: true}\n", "unrecognized feature gate: Nonsense"),
    Mistake("{header}a: [\n", "yaml: line"),
)
