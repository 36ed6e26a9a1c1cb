"""Inputs that a kubelet refuses, each with the words by which a person finds the mistake; and odd ones it takes."""

from typing import NamedTuple


class Mistake(NamedTuple):
    """One wrong flag, or one wrong line in the config file."""

    given: str
    named: str  # what both refusals must tell


FLAGS = (
    Mistake("--no-such-flag", "unknown flag: --no-such-flag"),
    Mistake("-x", "unknown shorthand flag: 'x' in -x"),
    Mistake("--=1", "bad flag syntax: --=1"),
    Mistake("---max-pods=1", "bad flag syntax: ---max-pods=1"),
    Mistake("stray", "unknown command stray"),
    Mistake("--max-pods", "flag needs an argument: --max-pods"),
    Mistake("-v", "flag needs an argument: 'v' in -v"),
    Mistake(
        "--max-pods=ten",
        'invalid argument "ten" for "--max-pods" flag: strconv.ParseInt: parsing "ten": invalid syntax',
    ),
    Mistake("--max-pods=1.5", 'invalid argument "1.5" for "--max-pods" flag'),
    Mistake("--max-pods=", 'invalid argument "" for "--max-pods" flag'),
    Mistake("--max-pods=3000000000", 'parsing "3000000000": value out of range'),
    Mistake("--max-pods=-1", "maxPods (--max-pods) -1 must not be a negative number"),
    Mistake("--register-node=maybe", 'invalid argument "maybe" for "--register-node" flag: strconv.ParseBool'),
    Mistake("--register-node=yes", 'parsing "yes": invalid syntax'),
    Mistake("--sync-frequency=10", 'for "--sync-frequency" flag: time: missing unit in duration "10"'),
    Mistake("--sync-frequency=fast", 'time: invalid duration "fast"'),
    Mistake("--sync-frequency=1d", 'time: unknown unit "d" in duration "1d"'),
    Mistake("--address=localhost", '"localhost" is not a valid IP address'),
    Mistake("--healthz-bind-address=300.1.1.1", '"300.1.1.1" is not a valid IP address'),
    Mistake("--kube-reserved=cpu", 'for "--kube-reserved" flag: malformed pair, expect string=string'),
    Mistake("--kube-reserved=gpu=1", '--kube-reserved value failed to parse: cannot reserve "gpu" resource'),
    Mistake("--system-reserved=cpu=-1", 'resource quantity for "cpu" cannot be negative: -1'),
    Mistake("--system-reserved=memory=lots", 'failed to parse quantity "lots" for "memory" resource'),
    Mistake("--eviction-hard=memory.available=1Gi", 'for "--eviction-hard" flag: malformed pair, expect string<string'),
    Mistake("--eviction-hard=disk.free<1Gi", "unsupported eviction signal disk.free"),
    Mistake("--eviction-hard=memory.available<-1Gi", "eviction threshold memory.available must be positive"),
    Mistake("--eviction-hard=memory.available<101%", "eviction percentage threshold memory.available must be <= 100%"),
    Mistake("--eviction-hard=memory.available<-1%", "eviction percentage threshold memory.available must be >= 0%"),
    Mistake("--eviction-hard=memory.available<1__0%", 'strconv.ParseFloat: parsing "1__0": invalid syntax'),
    Mistake("--eviction-hard=memory.available<1e40%", 'strconv.ParseFloat: parsing "1e40": value out of range'),
    Mistake("--eviction-soft=memory.available<1Gi", "grace period must be specified for the soft eviction threshold"),
    Mistake(
        "--eviction-soft=memory.available<1Gi --eviction-soft-grace-period=memory.available=-1s",
        "invalid eviction grace period specified: -1s, must be a positive value",
    ),
    Mistake(
        "--eviction-minimum-reclaim=memory.available=-1Mi --eviction-hard=memory.available<1Mi",
        "negative eviction minimum reclaim specified for memory.available",
    ),
    Mistake("--register-with-taints=a", "invalid taint spec: a"),
    Mistake("--register-with-taints=a=b:Sometimes", "invalid taint effect: Sometimes, unsupported taint effect"),
    Mistake("--register-with-taints=a=b:NoSchedule,a=c:NoSchedule", "duplicated taints with the same key and effect"),
    Mistake(
        "--node-labels=kubernetes.io/role=x",
        "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [kubernetes.io/role]",
    ),
    Mistake("--node-labels=a=b/c", "invalid node labels: 'b/c' - "),
    Mistake("--feature-gates=Nonsense=true", "unrecognized feature gate: Nonsense"),
    Mistake(
        "--feature-gates=KubeletPSI=false", "cannot set feature gate KubeletPSI to false, feature is locked to true"
    ),
    Mistake(
        "--feature-gates=NodeDeclaredFeatures=false", "depends on features that are disabled: [NodeDeclaredFeatures]"
    ),
    Mistake("--feature-gates=KubeletPSI", 'for "--feature-gates" flag: malformed pair, expect string=bool'),
    Mistake("--feature-gates=KubeletPSI=on", 'invalid value of KubeletPSI: on, err: strconv.ParseBool: parsing "on"'),
    Mistake("--manifest-url-header=novalue", "malformed pair, expect string:string"),
    Mistake("--reserved-memory=memory=1Gi", "the reserved memory has incorrect format"),
    Mistake("--reserved-memory=0:cpu=1", 'memory type conversion error, unknown type: "cpu"'),
    Mistake("--reserved-memory=x:memory=1Gi", "failed to convert the NUMA node ID, expected integer, got x"),
    Mistake("--vmodule=lease", '"lease" does not have the pattern=N format'),
    Mistake("-v=-1", 'for "-v, --v" flag: strconv.ParseUint: parsing "-1": invalid syntax'),
    Mistake("--v=loud", 'parsing "loud": invalid syntax'),
    Mistake("--logging-format=xml", 'logging.format: Invalid value: "xml": Unsupported log format'),
    Mistake("--logging-format=json --vmodule=a=1", "logging.vmodule: Forbidden: Only supported for text log format"),
    Mistake("--log-json-split-stream", "Feature LoggingAlphaOptions is disabled"),
    Mistake("--log-flush-frequency=0s", "logging.flushFrequency: Invalid value"),
    Mistake("--port=0", "port (--port) 0 must be between 1 and 65535, inclusive"),
    Mistake("--healthz-port=70000", "healthzPort (--healthz-port) 70000 must be between 1 and 65535, inclusive"),
    Mistake("--read-only-port=-1", "readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive"),
    Mistake("--oom-score-adj=2000", "oomScoreAdj (--oom-score-adj) 2000 must be between -1000 and 1000, inclusive"),
    Mistake("--runonce", "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"),
    Mistake("--hairpin-mode=loop", 'option "loop" specified for hairpinMode (--hairpin-mode)'),
    Mistake("--topology-manager-policy=x", 'topologyManagerPolicy (--topology-manager-policy) "x" must be one of'),
    Mistake(
        "--topology-manager-scope=x",
        'topologyManagerScope (--topology-manager-scope) "x" must be one of: "container", or "pod"',
    ),
    Mistake(
        "--enforce-node-allocatable=pods,pods --cgroups-per-qos",
        'duplicated enforcements "pods" in enforceNodeAllocatable',
    ),
    Mistake(
        "--enforce-node-allocatable=all",
        'option "all" specified for enforceNodeAllocatable (--enforce-node-allocatable)',
    ),
    Mistake("--reserved-cpus=a-b", "unable to parse reservedSystemCPUs (--reserved-cpus) a-b"),
    Mistake(
        "--reserved-cpus=0 --kube-reserved-cgroup=/k",
        "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup",
    ),
    Mistake("--container-runtime-endpoint=", "the containerRuntimeEndpoint was not specified or empty"),
    Mistake(
        "--image-gc-low-threshold=90", "imageGCLowThresholdPercent (--image-gc-low-threshold) 90 must be less than"
    ),
    Mistake(
        "--cpu-cfs-quota-period=2s",
        "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive",
    ),
    Mistake("--container-log-max-files=1", "containerLogMaxFiles must be greater than 1"),
    Mistake(
        "--system-cgroups=/s",
        "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified",
    ),
    Mistake("--node-ip=10.0.0.1,10.0.0.2", 'bad --node-ip "10.0.0.1,10.0.0.2"'),
    Mistake("--config=/no/such/file", "open /no/such/file: no such file or directory"),
    Mistake("--config-dir=/no/such/dir", "lstat /no/such/dir: no such file or directory"),
    Mistake(
        "--cloud-provider=nimbus", 'cloud provider "nimbus" was specified, but built-in cloud providers are disabled'
    ),
    Mistake("--version=v9.9.9", 'version "v9.9.9" must match major/minor/patch of default version'),
    Mistake("--authorization-mode=Sometimes", "failed to run Kubelet: unknown authorization mode Sometimes"),
    Mistake("--authorization-mode=", "no authorization mode specified"),
    Mistake("--tls-min-version=TLS12", 'failed to construct kubelet dependencies: unknown tls version "TLS12"'),
    Mistake("--tls-cipher-suites=FAST", "Cipher suite FAST not supported or doesn't exist"),
    Mistake("--exit-on-lock-contention", "cannot exit on lock file contention: no lock file specified"),
    Mistake("--container-log-max-size=big", 'failed to parse container log max size "big"'),
    Mistake("--cpu-manager-policy=best", 'unknown policy: "best"'),
    Mistake("--memory-manager-policy=best", 'unknown policy: "best"'),
    Mistake("--qos-reserved=memory=200%", "percentage must be between 0 and 100"),
    Mistake("--qos-reserved=memory=all", "percentage expected, got 'all'"),
    Mistake("--qos-reserved=cpu=10%", '--qos-reserved value failed to parse: cannot reserve "cpu" resource'),
    Mistake("--sync-frequency=3000000h", 'for "--sync-frequency" flag: time: invalid duration "3000000h"'),
    Mistake("--log-flush-frequency=-1s", 'logging.flushFrequency: Invalid value: "-1s": Must be greater than zero'),
)

ODD_BUT_TAKEN = (
    "--cluster-dns=nonsense",
    "--node-ip=nonsense",
    "--cgroup-driver=other",
    "--authorization-mode=AlwaysAllow",
    "--node-labels=a,b,,",
    "--eviction-hard=,,",
    "--eviction-hard=memory.available<0%",
    "--eviction-hard=memory.available<100%",
    "--eviction-hard=memory.available<100.000001%",
    "--eviction-hard=memory.available<25%%",
    "--eviction-hard=memory.available<1_0%",
    "--kube-reserved=,cpu=1,",
    "--max-pods=0",
    "--node-status-max-images=-1",
    "--image-gc-high-threshold=100",
    "--register-with-taints=",
    "--address=",
    "--provider-id=",
    "--streaming-connection-idle-timeout=0",
    "--system-reserved=pid=100",
    "--housekeeping_interval=1s",
    "--container-log-max-size=-1",
    "--kube-api-content-type=nonsense",
    "--pod-cidr=nonsense",
    "--manifest-url=nonsense",
    "--cgroup-driver=",
    "--topology-manager-policy-options=a=b",
)
