"""Every field and every flag with another value than its default, as far as a kubelet starts with it on any machine."""

from tests.parity.config_case import file_case, flags_case

EVERY_FIELD = """
staticPodPath: "{dir}/manifests"
syncFrequency: 61s
fileCheckFrequency: 21s
httpCheckFrequency: 22s
staticPodURLHeader: {a: [b, c]}
readOnlyPort: 0
tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
tlsCurvePreferences: [29, 23]
tlsMinVersion: VersionTLS12
rotateCertificates: true
authentication: {x509: {clientCAFile: "{ca}"}, webhook: {enabled: true, cacheTTL: 3m}, anonymous: {enabled: true}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 6m, cacheUnauthorizedTTL: 31s}}
registryPullQPS: 6
registryBurst: 11
imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages
preloadedImagesVerificationAllowlist: [example.com/a]
eventRecordQPS: 51
eventBurst: 101
enableContentionProfiling: true
healthzBindAddress: 127.0.0.2
oomScoreAdj: -998
clusterDomain: example.com
clusterDNS: [10.0.0.10]
streamingConnectionIdleTimeout: 3h
nodeStatusUpdateFrequency: 11s
nodeStatusReportFrequency: 6m
nodeLeaseDurationSeconds: 41
imageMinimumGCAge: 3m
imageMaximumGCAge: 4m
imageGCHighThresholdPercent: 86
imageGCLowThresholdPercent: 81
volumeStatsAggPeriod: 2m
kubeletCgroups: /kubelet
cgroupRoot: /
cgroupDriver: systemd
cpuManagerReconcilePeriod: 12s
singleProcessOOMKill: true
topologyManagerPolicy: best-effort
topologyManagerScope: pod
runtimeRequestTimeout: 3m
hairpinMode: hairpin-veth
maxPods: 111
podCIDR: 10.1.0.0/24
podPidsLimit: 100
resolvConf: /etc/hosts
cpuCFSQuota: false
cpuCFSQuotaPeriod: 50ms
nodeStatusMaxImages: 51
maxOpenFiles: 10001
contentType: application/json
kubeAPIQPS: 52
kubeAPIBurst: 102
serializeImagePulls: false
maxParallelImagePulls: 3
evictionHard: {memory.available: 101Mi, nodefs.available: 11%, nodefs.inodesFree: 6%, pid.available: 5%}
evictionSoft: {memory.available: 201Mi}
evictionSoftGracePeriod: {memory.available: 2m}
evictionPressureTransitionPeriod: 6m
evictionMaxPodGracePeriod: 3
evictionMinimumReclaim: {memory.available: 1Mi}
mergeDefaultEvictionSettings: true
podsPerCore: 50
enableControllerAttachDetach: false
iptablesMasqueradeBit: 13
iptablesDropBit: 12
featureGates: {ContextualLogging: false, KubeletPSI: true}
memorySwap: {swapBehavior: NoSwap}
containerLogMaxSize: 11Mi
containerLogMaxFiles: 6
containerLogMaxWorkers: 2
containerLogMonitorInterval: 11s
configMapAndSecretChangeDetectionStrategy: Cache
systemReserved: {cpu: 10m, memory: 11Mi}
kubeReserved: {cpu: 12m, memory: 13Mi}
showHiddenMetricsForVersion: "1.35"
kubeReservedCgroup: /k
systemReservedCgroup: /s
allowedUnsafeSysctls: [net.core.somaxconn]
providerID: example://x
kernelMemcgNotification: true
logging: {format: text, flushFrequency: 6s, verbosity: 1, vmodule: [{filePattern: a, verbosity: 2}]}
enableSystemLogHandler: true
enableSystemLogQuery: true
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
crashLoopBackOff: {maxContainerRestartPeriod: 200s}
enableProfilingHandler: false
enableDebugFlagsHandler: false
seccompDefault: true
memoryThrottlingFactor: 0.8
registerWithTaints: [{key: a, value: b, effect: NoSchedule}]
registerNode: false
localStorageCapacityIsolation: false
imageServiceEndpoint: "{runtime}"
userNamespaces: {idsPerPod: 131072}
"""

EVERY_FLAG = (
    "--allowed-unsafe-sysctls=net.core.somaxconn",
    "--anonymous-auth=true",
    "--application-metrics-count-limit=5",
    "--authentication-token-webhook=true",
    "--authentication-token-webhook-cache-ttl=3m",
    "--authorization-mode=AlwaysAllow",
    "--authorization-webhook-cache-authorized-ttl=6m",
    "--authorization-webhook-cache-unauthorized-ttl=31s",
    "--cgroup-driver=systemd",
    "--cgroup-root=/",
    "--client-ca-file={ca}",
    "--cloud-provider=external",
    "--cluster-dns=10.0.0.10",
    "--cluster-domain=example.com",
    "--container-log-max-files=6",
    "--container-log-max-size=11Mi",
    "--contention-profiling",
    "--cpu-cfs-quota=false",
    "--cpu-cfs-quota-period=50ms",
    "--cpu-manager-reconcile-period=12s",
    "--enable-controller-attach-detach=false",
    "--enable-load-reader=false",
    "--event-burst=101",
    "--event-qps=51",
    "--event-storage-age-limit=default=1",
    "--eviction-hard=memory.available<101Mi",
    "--eviction-max-pod-grace-period=3",
    "--eviction-minimum-reclaim=memory.available=1Mi",
    "--eviction-pressure-transition-period=6m",
    "--eviction-soft=memory.available<201Mi",
    "--eviction-soft-grace-period=memory.available=2m",
    "--experimental-allocatable-ignore-eviction",
    "--feature-gates=ContextualLogging=false",
    "--file-check-frequency=21s",
    "--global-housekeeping-interval=2m",
    "--hairpin-mode=hairpin-veth",
    "--healthz-bind-address=127.0.0.2",
    "--hostname-override=everything",
    "--housekeeping-interval=11s",
    "--http-check-frequency=22s",
    "--image-gc-high-threshold=86",
    "--image-gc-low-threshold=81",
    "--image-service-endpoint={runtime}",
    "--kernel-memcg-notification",
    "--kube-api-burst=102",
    "--kube-api-content-type=application/json",
    "--kube-api-qps=52",
    "--kube-reserved=cpu=12m",
    "--kube-reserved-cgroup=/k",
    "--kubelet-cgroups=/kubelet",
    "--local-storage-capacity-isolation=false",
    "--log-flush-frequency=6s",
    "--logging-format=text",
    "--manifest-url-header=a:b",
    "--max-open-files=10001",
    "--max-pods=111",
    "--maximum-dead-containers=2",
    "--maximum-dead-containers-per-container=2",
    "--memory-manager-policy=None",
    "--minimum-container-ttl-duration=1s",
    "--minimum-image-ttl-duration=3m",
    "--node-labels=a=b",
    "--node-status-max-images=51",
    "--node-status-update-frequency=11s",
    "--oom-score-adj=-998",
    "--pod-cidr=10.1.0.0/24",
    "--pod-manifest-path={dir}/manifests",
    "--pod-max-pids=100",
    "--pods-per-core=50",
    "--provider-id=example://x",
    "--register-node=false",
    "--register-with-taints=a=b:NoSchedule",
    "--registry-burst=11",
    "--registry-qps=6",
    "--resolv-conf=/etc/hosts",
    "--rotate-certificates",
    "--runtime-cgroups=/runtime",
    "--runtime-request-timeout=3m",
    "--seccomp-default",
    "--serialize-image-pulls=false",
    "--storage-driver-db=x",
    "--streaming-connection-idle-timeout=3h",
    "--sync-frequency=61s",
    "--system-reserved=cpu=10m",
    "--system-reserved-cgroup=/s",
    "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "--tls-min-version=VersionTLS12",
    "--topology-manager-policy=best-effort",
    "--topology-manager-scope=pod",
    "--v=1",
    "--vmodule=a=2",
    "--volume-stats-agg-period=2m",
)

EVERYTHING = (
    file_case("every field", EVERY_FIELD),
    flags_case("every flag", *EVERY_FLAG),
    file_case("every flag over every field", EVERY_FIELD, *EVERY_FLAG),
    file_case("every field in a drop-in", "", drop_ins={"a.conf": EVERY_FIELD}),
)
