"""The settings of a node as tests make them: under the names of agent.core.config, with the defaults of a kubelet."""

from functools import partial

from agent.core import config
from agent.core.kubelet_data.version import KUBELET_VERSION

Registration = partial(
    config.Registration,
    register_node=True,
    adopted=False,
    keeps_addresses=False,
    labels={},
    taints=(),
    provider_id="",
    external_cloud_provider=False,
    controller_attach_detach=True,
    on_node_deleted="register",
    deregister=False,
)
Heartbeat = partial(
    config.Heartbeat,
    status_update_seconds=10.0,
    status_report_seconds=300.0,
    lease_duration_seconds=40,
    events_per_second=50.0,
    events_at_once=100,
)
Resources = partial(
    config.Resources,
    max_pods=110,
    pods_per_core=0,
    kube_reserved={},
    system_reserved={},
    reserved_cpus="",
    local_storage=True,
    ignore_eviction=False,
    overrides={},
    extended={},
    allocatable={},
)
Eviction = partial(
    config.Eviction, hard=(), soft=(), transition_seconds=300.0, max_pod_grace_seconds=0, as_kubelet=False
)
Serving = partial(
    config.Serving,
    enabled=True,
    address="0.0.0.0",
    port=10250,
    read_only_port=10255,
    healthz_port=10248,
    healthz_bind_address="127.0.0.1",
    status_page="loopback",
    anonymous=True,
    client_ca_file="",
    trusts_cluster_ca=False,
    token_reviews=False,
    token_seconds=120.0,
    access_reviews=False,
    allowed_seconds=300.0,
    denied_seconds=30.0,
    debugging_handlers=True,
    system_logs=True,
    profiling=True,
    debug_flags=True,
    tls_min_version="",
    tls_cipher_suites=(),
)
Certificates = partial(
    config.Certificates,
    directory="/var/lib/kubelet/pki",
    bootstrap_kubeconfig="",
    rotate_client=False,
    serving_by_request=False,
    serving_certificate="",
    serving_key="",
)
Shutdown = partial(config.Shutdown, grace_periods=())
Pods = partial(
    config.Pods,
    mode="simulate",
    job_run_seconds=10.0,
    usage={},
    commands="understand",
    allowed_sysctls=(),
    manifest_path="",
    manifest_check_seconds=20.0,
)
HostConfig = partial(
    config.HostConfig,
    root="/",
    root_dir="/var/lib/kubelet",
    machine_id_files=("/etc/machine-id", "/var/lib/dbus/machine-id"),
    boot_id_files=("/proc/sys/kernel/random/boot_id",),
    resolved_name="",
    from_cgroup=False,
    sensor_seconds=1.0,
)
ProcessConfig = partial(
    config.ProcessConfig,
    kubeconfig="",
    host=HostConfig(),
    serving=Serving(),
    certificates=Certificates(),
)
NodeConfig = partial(
    config.NodeConfig,
    node_name="n1",
    node_ips=(),
    node_ip_type="InternalIP",
    kubelet_version=KUBELET_VERSION,
    kube_proxy_version="",
    kubelet_port=10250,
    shares_port=False,
    container_runtime_version="",
    declared_features=(),
    registration=Registration(),
    heartbeat=Heartbeat(),
    resources=Resources(),
    eviction=Eviction(),
    shutdown=Shutdown(),
    pods=Pods(),
)
Config = partial(config.Config, process=ProcessConfig(), node=NodeConfig())

# `config check` of settings alone, whatever ports others have on this machine, and however full its disks are
CHECK = ("config", "check", "--enable-server=false", "--healthz-port=0", "--eviction-hard=pid.available<1")
