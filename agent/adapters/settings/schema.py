"""KubeletConfiguration v1beta1 and FakeKubeletConfiguration v1alpha1: every field, its type and its default."""

from collections.abc import Iterator

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
    STRINGS,
    Field,
    Struct,
    listing,
    mapping,
    structs,
)

KUBELET_API, FAKE_API = "kubelet.config.k8s.io/v1beta1", "fake-kubelet.dev/v1alpha1"
KUBELET_KIND, FAKE_KIND = "KubeletConfiguration", "FakeKubeletConfiguration"


def _bool(default: bool) -> Field:
    return Field(BOOL, default, pointer=True)


def _int(default: int) -> Field:
    return Field(INT32, default, pointer=True)


_STRING, _INT, _FALSE = Field(STRING), Field(INT32), Field(BOOL)
_ROUTING = {"splitStream": _FALSE, "infoBufferSize": Field(QUANTITY, "0")}
_TAINTS = structs(
    "v1.Taint", {"key": STRING, "value": STRING, "effect": STRING, "timeAdded": STRING}, ("key", "effect")
)
_SHUTDOWN = structs(
    "v1beta1.ShutdownGracePeriodByPodPriority",
    {"priority": INT32, "shutdownGracePeriodSeconds": INT64},
    ("priority", "shutdownGracePeriodSeconds"),
)
_MEMORY = structs("v1beta1.MemoryReservation", {"numaNode": INT32, "limits": mapping(QUANTITY)}, ("numaNode", "limits"))
_VMODULE = structs("v1.VModuleItem", {"filePattern": STRING, "verbosity": LEVEL}, ("filePattern", "verbosity"))

_AUTHENTICATION = Struct(
    "KubeletAuthentication",
    {
        "x509": Struct("KubeletX509Authentication", {"clientCAFile": _STRING}),
        "webhook": Struct(
            "KubeletWebhookAuthentication", {"enabled": _bool(True), "cacheTTL": Field(DURATION, "2m0s")}
        ),
        "anonymous": Struct("KubeletAnonymousAuthentication", {"enabled": _bool(False)}),
    },
)
_AUTHORIZATION = Struct(
    "KubeletAuthorization",
    {
        "mode": Field(STRING, "Webhook"),
        "webhook": Struct(
            "KubeletWebhookAuthorization",
            {"cacheAuthorizedTTL": Field(DURATION, "5m0s"), "cacheUnauthorizedTTL": Field(DURATION, "30s")},
        ),
    },
)
_LOGGING = Struct(
    "LoggingConfiguration",
    {
        "format": Field(STRING, "text"),
        "flushFrequency": Field(FLUSH, "5s"),
        "verbosity": Field(LEVEL),
        "vmodule": Field(_VMODULE),
        "options": Struct(
            "FormatOptions", {"text": Struct("TextOptions", _ROUTING), "json": Struct("JSONOptions", _ROUTING)}
        ),
    },
)

# kubelet v1.36: kubelet/config/v1beta1/types.go, and SetDefaults_KubeletConfiguration
KUBELET = Struct(
    KUBELET_KIND,
    {
        "enableServer": _bool(True),
        "staticPodPath": _STRING,
        "podLogsDir": Field(STRING, "/var/log/pods"),
        "syncFrequency": Field(DURATION, "1m0s"),
        "fileCheckFrequency": Field(DURATION, "20s"),
        "httpCheckFrequency": Field(DURATION, "20s"),
        "staticPodURL": _STRING,
        "staticPodURLHeader": Field(mapping(STRINGS)),
        "address": Field(STRING, "0.0.0.0"),  # noqa: S104  kubelet's default
        "port": Field(INT32, 10250),
        "readOnlyPort": _INT,
        "tlsCertFile": _STRING,
        "tlsPrivateKeyFile": _STRING,
        "tlsCipherSuites": Field(STRINGS),
        "tlsCurvePreferences": Field(listing(INT32)),
        "tlsMinVersion": _STRING,
        "rotateCertificates": _FALSE,
        "serverTLSBootstrap": _FALSE,
        "authentication": _AUTHENTICATION,
        "authorization": _AUTHORIZATION,
        "registryPullQPS": _int(5),
        "registryBurst": Field(INT32, 10),
        "imagePullCredentialsVerificationPolicy": Field(STRING, "NeverVerifyPreloadedImages"),
        "preloadedImagesVerificationAllowlist": Field(STRINGS),
        "eventRecordQPS": _int(50),
        "eventBurst": Field(INT32, 100),
        "enableDebuggingHandlers": _bool(True),
        "enableContentionProfiling": _FALSE,
        "healthzPort": _int(10248),
        "healthzBindAddress": Field(STRING, "127.0.0.1"),
        "oomScoreAdj": _int(-999),
        "clusterDomain": _STRING,
        "clusterDNS": Field(STRINGS),
        "streamingConnectionIdleTimeout": Field(DURATION, "4h0m0s"),
        "nodeStatusUpdateFrequency": Field(DURATION, "10s"),
        "nodeStatusReportFrequency": Field(DURATION, "5m0s"),
        "nodeLeaseDurationSeconds": Field(INT32, 40),
        "imageMinimumGCAge": Field(DURATION, "2m0s"),
        "imageMaximumGCAge": Field(DURATION),
        "imageGCHighThresholdPercent": _int(85),
        "imageGCLowThresholdPercent": _int(80),
        "volumeStatsAggPeriod": Field(DURATION, "1m0s"),
        "kubeletCgroups": _STRING,
        "systemCgroups": _STRING,
        "cgroupRoot": _STRING,
        "cgroupsPerQOS": _bool(True),
        "cgroupDriver": Field(STRING, "cgroupfs"),
        "cpuManagerPolicy": Field(STRING, "none"),
        "singleProcessOOMKill": Field(BOOL, pointer=True),
        "cpuManagerPolicyOptions": Field(STRING_MAP),
        "cpuManagerReconcilePeriod": Field(DURATION, "10s"),
        "memoryManagerPolicy": Field(STRING, "None"),
        "topologyManagerPolicy": Field(STRING, "none"),
        "topologyManagerScope": Field(STRING, "container"),
        "topologyManagerPolicyOptions": Field(STRING_MAP),
        "qosReserved": Field(STRING_MAP),
        "runtimeRequestTimeout": Field(DURATION, "2m0s"),
        "hairpinMode": Field(STRING, "promiscuous-bridge"),
        "maxPods": Field(INT32, 110),
        "podCIDR": _STRING,
        "podPidsLimit": Field(INT64, -1, pointer=True),
        "resolvConf": Field(STRING, "/etc/resolv.conf", pointer=True),
        "runOnce": _FALSE,
        "cpuCFSQuota": _bool(True),
        "cpuCFSQuotaPeriod": Field(DURATION, "100ms", pointer=True),
        "nodeStatusMaxImages": _int(50),
        "maxOpenFiles": Field(INT64, 1000000),
        "contentType": Field(STRING, "application/vnd.kubernetes.protobuf"),
        "kubeAPIQPS": _int(50),
        "kubeAPIBurst": Field(INT32, 100),
        "serializeImagePulls": _bool(True),
        "maxParallelImagePulls": Field(INT32, pointer=True),
        "evictionHard": Field(STRING_MAP),
        "evictionSoft": Field(STRING_MAP),
        "evictionSoftGracePeriod": Field(STRING_MAP),
        "evictionPressureTransitionPeriod": Field(DURATION, "5m0s"),
        "evictionMaxPodGracePeriod": _INT,
        "evictionMinimumReclaim": Field(STRING_MAP),
        "mergeDefaultEvictionSettings": _bool(False),
        "podsPerCore": _INT,
        "enableControllerAttachDetach": _bool(True),
        "protectKernelDefaults": _FALSE,
        "makeIPTablesUtilChains": _bool(True),
        "iptablesMasqueradeBit": _int(14),
        "iptablesDropBit": _int(15),
        "featureGates": Field(mapping(BOOL)),
        "failSwapOn": _bool(True),
        "memorySwap": Struct("MemorySwapConfiguration", {"swapBehavior": _STRING}),
        "containerLogMaxSize": Field(STRING, "10Mi"),
        "containerLogMaxFiles": _int(5),
        "containerLogMaxWorkers": _int(1),
        "containerLogMonitorInterval": Field(DURATION, "10s", pointer=True),
        "configMapAndSecretChangeDetectionStrategy": Field(STRING, "Watch"),
        "systemReserved": Field(STRING_MAP),
        "kubeReserved": Field(STRING_MAP),
        "reservedSystemCPUs": _STRING,
        "showHiddenMetricsForVersion": _STRING,
        "systemReservedCgroup": _STRING,
        "kubeReservedCgroup": _STRING,
        "enforceNodeAllocatable": Field(STRINGS, ["pods"], pointer=True),
        "allowedUnsafeSysctls": Field(STRINGS),
        "volumePluginDir": Field(STRING, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
        "providerID": _STRING,
        "kernelMemcgNotification": _FALSE,
        "logging": _LOGGING,
        "enableSystemLogHandler": _bool(True),
        "enableSystemLogQuery": _bool(False),
        "shutdownGracePeriod": Field(DURATION),
        "shutdownGracePeriodCriticalPods": Field(DURATION),
        "shutdownGracePeriodByPodPriority": Field(_SHUTDOWN),
        "crashLoopBackOff": Struct(
            "CrashLoopBackOffConfig", {"maxContainerRestartPeriod": Field(DURATION, "5m0s", pointer=True)}
        ),
        "reservedMemory": Field(_MEMORY),
        "enableProfilingHandler": _bool(True),
        "enableDebugFlagsHandler": _bool(True),
        "seccompDefault": _bool(False),
        "memoryThrottlingFactor": Field(FLOAT, 0.9, pointer=True),
        "memoryReservationPolicy": Field(STRING, "None"),
        "registerWithTaints": Field(_TAINTS),
        "registerNode": _bool(True),
        "tracing": Struct(
            "TracingConfiguration",
            {"endpoint": Field(STRING, pointer=True), "samplingRatePerMillion": Field(INT32, pointer=True)},
            pointer=True,
        ),
        "localStorageCapacityIsolation": _bool(True),
        "containerRuntimeEndpoint": Field(STRING, "unix:///run/containerd/containerd.sock"),
        "imageServiceEndpoint": _STRING,
        "failCgroupV1": _bool(True),
        "userNamespaces": Struct("UserNamespaces", {"idsPerPod": Field(INT64, pointer=True)}, pointer=True),
    },
)

# What kubelet has no field for; each is a flag too.
FAKE = Struct(
    FAKE_KIND,
    {
        "sensorInterval": Field(DURATION, "1s"),
        "capacity": Field(STRING_MAP),
        "extendedResources": Field(STRING_MAP),
        "capacityFrom": Field(STRING, "host"),
        "hostRoot": Field(STRING, "/"),
        "nodeIPType": Field(STRING, "InternalIP"),
        "kubeletVersion": _STRING,
        "onNodeDeleted": Field(STRING, "register"),
        "deregister": _FALSE,
        "pods": Field(STRING, "simulate"),
        "jobRunFor": Field(DURATION, "10s"),
        "statusPage": Field(STRING, "loopback"),
        "strictFlags": _FALSE,
    },
)


def leaves(struct: Struct, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field of a struct with its dotted path, those of inner structs included."""
    for name, entry in struct.fields.items():
        if isinstance(entry, Struct):
            yield from leaves(entry, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", entry
