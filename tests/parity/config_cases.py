"""The matrix of flags and files that a real kubelet and fake-kubelet must make the same configuration of."""

from tests.parity.config_case import file_case, flags_case
from tests.parity.config_distributions import DISTRIBUTIONS
from tests.parity.config_everything import EVERYTHING

FLAG_CASES = (
    flags_case("no flags"),
    flags_case("one of each kind", "--max-pods=29", "--sync-frequency=90s", "--cluster-dns=10.0.0.10,10.0.0.11"),
    flags_case("separate values", "--max-pods", "29", "--cluster-domain", "a.b", "--v", "2"),
    flags_case("short verbosity", "-v", "3"),
    flags_case("short verbosity, joined", "-v4"),
    flags_case("underscores", "--max_pods=30", "--cluster_dns=10.0.0.10"),
    flags_case("bare and negated booleans", "--fail-swap-on", "--register-node=false", "--serialize-image-pulls=0"),
    flags_case(
        "the last one wins", "--max-pods=1", "--max-pods=2", "--hairpin-mode=none", "--hairpin-mode=hairpin-veth"
    ),
    flags_case("lists add up", "--cluster-dns=10.0.0.10", "--cluster-dns=10.0.0.11,10.0.0.12"),
    flags_case("a list with a quoted comma", '--cluster-dns="10.0.0.10,10.0.0.11",10.0.0.12'),
    flags_case("maps add up", "--kube-reserved=cpu=100m", "--kube-reserved=memory=1Gi, cpu=200m"),
    flags_case("an empty map", "--kube-reserved=", "--eviction-hard="),
    flags_case(
        "eviction",
        "--eviction-hard=memory.available<1Gi,nodefs.available<5%",
        "--eviction-soft=memory.available<2Gi",
        "--eviction-soft-grace-period=memory.available=1m30s",
        "--eviction-minimum-reclaim=memory.available=0Mi",
        "--eviction-max-pod-grace-period=30",
        "--eviction-pressure-transition-period=1m",
    ),
    flags_case("taints", "--register-with-taints=a=b:NoSchedule,c:NoExecute,d=:PreferNoSchedule"),
    flags_case("headers", "--manifest-url-header=a:hello,b:again,c:world", "--manifest-url-header=b:beautiful"),
    flags_case("reserved memory", "--reserved-memory=0:memory=1Gi,hugepages-2Mi=1024Mi;1:memory=2048Mi"),
    flags_case(
        "feature gates", "--feature-gates=AllAlpha=false,ContextualLogging=true", "--feature-gates=KubeletPSI=true"
    ),
    flags_case("logging", "--logging-format=json", "--log-flush-frequency=2s", "-v=2"),
    flags_case("vmodule", "--vmodule=lease*=5,status=4"),
    flags_case("numbers in other bases", "--max-pods=0x20", "--event-burst=0b11", "--oom-score-adj=-0o17"),
    flags_case("durations", "--sync-frequency=1.5h", "--file-check-frequency=100ms", "--volume-stats-agg-period=-1s"),
    flags_case("identity", "--provider-id=kind://x", "--node-labels=a=b", "--hostname-override=n1", "--node-ip=::"),
    flags_case("topology", "--topology-manager-policy=best-effort", "--topology-manager-scope=pod"),
    flags_case("serving", "--anonymous-auth=true", "--authentication-token-webhook", "--authorization-mode=Webhook"),
    flags_case("TLS", "--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256"),
    flags_case("cadvisor's flags change nothing", "--housekeeping-interval=5s", "--boot-id-file=/x", "--containerd=/y"),
    flags_case("seccomp-default is no field", "--seccomp-default"),
    flags_case("our own flags beside them", only_ours=["--sensor-interval=2s", "--capacity=cpu=64"]),
)

FILE_CASES = (
    file_case("an empty configuration", ""),
    file_case(
        "flags over the file",
        "maxPods: 50\nclusterDomain: a\nkubeReserved: {cpu: '1'}",
        "--max-pods=60",
        "--kube-reserved=memory=1Gi",
    ),
    file_case(
        "zero is the default",
        "maxPods: 0\nsyncFrequency: 0s\neventBurst: 0\nregistryPullQPS: 0",
    ),
    file_case("null is the default", "maxPods: null\nevictionHard: null\nclusterDNS: ~\nauthentication: null"),
    file_case(
        "feature gates merge by key",
        "featureGates: {KubeletPSI: true, AllAlpha: false}",
        "--feature-gates=NodeSwap=true,ContextualLogging=false",
    ),
    file_case("a gate takes its field's default along", "featureGates: {KubeletCrashLoopBackOffMax: false}"),
    file_case("a gate of the flags takes it along too", "", "--feature-gates=KubeletEnsureSecretPulledImages=false"),
    file_case("evictionHard replaces the default", "evictionHard: {memory.available: 500Mi}"),
    file_case(
        "evictionHard merges with the default",
        "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true",
    ),
    file_case("evictionHard empty", "evictionHard: {}"),
    file_case("report frequency follows update frequency", "nodeStatusUpdateFrequency: 20s"),
    file_case("parallel pulls are not serial", "maxParallelImagePulls: 4"),
    file_case(
        "relative paths are the file's",
        "staticPodPath: manifests\nvolumePluginDir: ./plugins/../plugins\nresolvConf: etc/resolv.conf",
    ),
    file_case("an empty resolvConf is kept", "resolvConf: ''"),
    file_case(
        "YAML 1.1 words and numbers",
        "registerNode: off\nfailSwapOn: No\nmaxPods: 0o62\noomScoreAdj: -1_0\nprotectKernelDefaults: y",
    ),
    file_case("octal and hex", "maxPods: 062\nmaxOpenFiles: 0xFF\neventBurst: 1e3"),
    file_case("unknown and duplicate fields", "maxPods: 5\nmaxPods: 6\nnoSuchField: 1\nauthentication: {foo: 1}"),
    file_case(
        "a second document is not kubelet's",
        "maxPods: 7\n---\napiVersion: fake-kubelet.dev/v1alpha1\nkind: FakeKubeletConfiguration\nsensorInterval: 3s",
    ),
    file_case(
        "nested structs",
        "logging: {format: json, verbosity: 3, flushFrequency: 3s}\nmemorySwap: {swapBehavior: NoSwap}\n"
        "tracing: {samplingRatePerMillion: 100}",
    ),
    file_case(
        "flush frequency as a number",
        "logging: {flushFrequency: 5000000000, vmodule: [{filePattern: 'a*', verbosity: 4}]}",
    ),
    file_case(
        "lists of structs",
        "registerWithTaints: [{key: a, value: b, effect: NoSchedule}]\n"
        "shutdownGracePeriodByPodPriority: [{priority: 1, shutdownGracePeriodSeconds: 10}]\n"
        "reservedMemory: [{numaNode: 0, limits: {memory: 1024Mi}}]",
    ),
    file_case("graceful shutdown", "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s"),
    file_case(
        "odd values that are kept",
        "memoryThrottlingFactor: 1\nuserNamespaces: {idsPerPod: 131072}\nsingleProcessOOMKill: true\n"
        "tlsCurvePreferences: [29]\npodPidsLimit: -5",
    ),
    file_case(
        "reservations",
        "systemReserved: {memory: 1Gi, cpu: 200m}\nkubeReserved: {cpu: 100m, pid: '100'}\nreservedSystemCPUs: '0'",
    ),
    file_case(
        "JSON",
        '{"apiVersion": "kubelet.config.k8s.io/v1beta1",\n\t"kind": "KubeletConfiguration",\n'
        '\t"maxPods": 12, "clusterDNS": ["10.0.0.1"], {base}}',
        as_it_is=True,
    ),
)

DROP_IN_CASES = (
    file_case(
        "drop-ins over the file",
        "maxPods: 1\nclusterDNS: [10.0.0.1]\nkubeReserved: {cpu: 100m, memory: 1Gi}",
        drop_ins={
            "10-a.conf": "maxPods: 2\nclusterDNS: [10.0.0.2]\nkubeReserved: {cpu: 200m}",
            "20-b.conf": "maxPods: 3",
            "15.yaml": "maxPods: 9",
        },
    ),
    file_case(
        "flags over drop-ins",
        "maxPods: 1",
        "--max-pods=4",
        "--kube-reserved=cpu=1",
        drop_ins={"a.conf": "maxPods: 2\nkubeReserved: {memory: 1Gi}"},
    ),
    file_case(
        "null in a drop-in takes a field away",
        "clusterDomain: a\nevictionHard: {memory.available: 1Gi}",
        drop_ins={"a.conf": "clusterDomain: null\nevictionHard: null"},
    ),
    file_case("eviction maps merge", "", drop_ins={"a.conf": "evictionHard: {memory.available: 1Gi}"}),
    file_case("an update frequency in a drop-in", "", drop_ins={"a.conf": "nodeStatusUpdateFrequency: 30s"}),
    file_case(
        "directories are walked in order",
        "maxPods: 1",
        drop_ins={
            "b.conf": "maxPods: 5",
            "a/x.conf": "maxPods: 6\nclusterDomain: x",
            "c.d/y.conf": "clusterDomain: yy",
        },
    ),
    file_case("unknown fields of a drop-in", "", drop_ins={"a.conf": "noSuchField: 1\nmaxPods: 8"}),
    file_case(
        "feature gates of all three",
        "featureGates: {KubeletPSI: true}",
        "--feature-gates=ContextualLogging=false",
        drop_ins={"a.conf": "featureGates: {NodeSwap: true, ContextualLogging: true}"},
    ),
    flags_case("drop-ins without a file", "--max-pods=3", drop_ins={"a.conf": "maxPods: 2\nclusterDomain: z"}),
    file_case(
        "relative paths of a drop-in stay",
        "",
        drop_ins={"a.conf": "volumePluginDir: {dir}/vp2\nauthorization: {mode: AlwaysAllow}"},
    ),
)


CASES = (*FLAG_CASES, *FILE_CASES, *DROP_IN_CASES, *DISTRIBUTIONS, *EVERYTHING)
