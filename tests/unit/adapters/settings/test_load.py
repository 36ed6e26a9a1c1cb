import shlex
from functools import partial

import pytest

from agent import __version__
from agent.adapters.settings import load
from agent.core.errors import ConfigError
from agent.core.labels import Taint
from agent.core.pressure import DEFAULT_HARD, Threshold, ThresholdValue, parse_thresholds
from agent.core.quantity import Quantity
from tests.settings import (
    Certificates,
    Eviction,
    Heartbeat,
    HostConfig,
    NodeConfig,
    Pods,
    ProcessConfig,
    Registration,
    Resources,
    Serving,
)

CLOSED = partial(Serving, anonymous=False, token_reviews=True, access_reviews=True, read_only_port=0)
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)


def test_without_flags_everything_is_the_default():
    config = load(["--hostname-override=n1"])
    about_us = {
        "kubelet_version": f"v1.36.3+fake-kubelet.{__version__}",
        "container_runtime_version": f"fake://{__version__}",
        "declared_features": FEATURES,
    }
    made_here = Certificates(  # as in a kubelet, which makes them there
        serving_certificate="/var/lib/kubelet/pki/kubelet.crt", serving_key="/var/lib/kubelet/pki/kubelet.key"
    )
    eviction = Eviction(hard=parse_thresholds(DEFAULT_HARD))
    assert config.node == NodeConfig(node_name="n1", eviction=eviction, **about_us)
    assert config.process == ProcessConfig(
        host=HostConfig(resolved_name="n1"), serving=CLOSED(trusts_cluster_ca=True), certificates=made_here
    )


def test_the_defaults_are_kubelets():
    config = load(["--hostname-override=n1"])
    assert (config.node.heartbeat.status_update_seconds, config.node.heartbeat.status_report_seconds) == (10, 300)
    assert (config.node.heartbeat.lease_duration_seconds, config.node.heartbeat.lease_renew_seconds) == (40, 10)
    assert (config.node.resources.max_pods, config.process.serving.port, config.process.serving.healthz_port) == (
        110,
        10250,
        10248,
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--node-lease-duration-seconds=0", "nodeLeaseDurationSeconds must be greater than 0"),
        ("--max-pods=-1", r"maxPods \(--max-pods\) -1 must not be a negative number"),
        ("--pods-per-core=-1", r"podsPerCore \(--pods-per-core\) -1 must not be a negative number"),
        ("--port=0", r"port \(--port\) 0 must be between 1 and 65535, inclusive"),
        ("--healthz-port=65536", r"healthzPort \(--healthz-port\) 65536 must be between"),
    ],
)
def test_a_number_that_no_kubelet_takes_is_named(flag, message):
    with pytest.raises(ConfigError, match=message):
        load(["--hostname-override=n1", flag])


def test_the_version_that_is_told_can_be_set_as_in_a_kubelet():
    assert load(["--hostname-override=n1", "--version=v1.36.3-x"]).node.kubelet_version == "v1.36.3-x"


@pytest.mark.parametrize(
    ("gates", "declared"),
    [
        ("ExtendWebSocketsToKubelet=false", FEATURES[1:]),
        (f"NodeDeclaredFeatures=false,{'=false,'.join(FEATURES)}=false", ()),
        ("UserNamespacesHostNetworkSupport=true", FEATURES),  # the container runtime has to offer it, too
    ],
)
def test_a_feature_is_declared_while_its_gate_is_on(gates, declared):
    assert load(["--hostname-override=n1", f"--feature-gates={gates}"]).node.declared_features == declared


def test_flags_about_the_node_find_their_place():
    config = load(
        shlex.split(
            "--hostname-override N1 --node-labels=a=1,b=2 --node-labels b=3,c --register-node=false --port=10260 "
            "--register-with-taints=t=v:NoSchedule --provider-id=kind://x --cloud-provider=external --healthz-port 0 "
            "--enable-controller-attach-detach=0 --node-status-update-frequency=20s --node-status-report-frequency=1m "
            "--node-lease-duration-seconds=60 --healthz-bind-address=0.0.0.0 --root-dir=/data --kubeconfig /k "
            "--host-root=/host --kubelet-version=v1.2.3 --machine-id-file=/a,/b --boot_id_file=/c"
        )
    )
    assert config.node.node_name == "n1"
    assert config.node.registration == Registration(
        register_node=False,
        labels={"a": "1", "b": "3", "c": ""},
        taints=(Taint("t", "v", "NoSchedule"),),
        provider_id="kind://x",
        external_cloud_provider=True,
        controller_attach_detach=False,
    )
    assert config.node.heartbeat == Heartbeat(
        status_update_seconds=20, status_report_seconds=60, lease_duration_seconds=60
    )
    expected = CLOSED(port=10260, healthz_port=0, healthz_bind_address="0.0.0.0", trusts_cluster_ca=True)
    assert config.process.serving == expected
    assert (config.process.host.root_dir, config.process.kubeconfig, config.process.host.root) == (
        "/data",
        "/k",
        "/host",
    )
    assert config.node.kubelet_version == "v1.2.3"
    assert (config.process.host.machine_id_files, config.process.host.boot_id_files) == (("/a", "/b"), ("/c",))


def test_flags_about_serving_find_their_place(tmp_path):
    flags = (
        "--hostname-override=n --address=10.0.0.1 --port=1 --read-only-port=10256 --enable-server=false "
        "--anonymous-auth --client-ca-file=/ca --authentication-token-webhook=false "
        "--authentication-token-webhook-cache-ttl=3m --authorization-mode=AlwaysAllow "
        "--authorization-webhook-cache-authorized-ttl=4s --authorization-webhook-cache-unauthorized-ttl=5s "
        "--enable-debugging-handlers=false --tls-min-version=VersionTLS13 "
        "--tls-cipher-suites=TLS_AES_128_GCM_SHA256"
    )
    expected = Serving(
        enabled=False,
        address="10.0.0.1",
        port=1,
        read_only_port=10256,
        anonymous=True,
        client_ca_file="/ca",
        token_reviews=False,
        token_seconds=180,
        access_reviews=False,
        allowed_seconds=4,
        denied_seconds=5,
        debugging_handlers=False,
        tls_min_version="VersionTLS13",
        tls_cipher_suites=("TLS_AES_128_GCM_SHA256",),
    )
    assert load(shlex.split(flags)).process.serving == expected


def test_the_fields_about_serving_that_have_no_flag_find_their_place(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "enableSystemLogHandler: false\nenableProfilingHandler: false\nenableDebugFlagsHandler: false\n"
    )
    serving = load(["--hostname-override=n", f"--config={file}"]).process.serving
    assert serving == CLOSED(system_logs=False, profiling=False, debug_flags=False, trusts_cluster_ca=True)


def test_serving_is_closed_to_strangers_unless_legacy_flag_defaults_are_asked_for():
    closed, opened = (
        load(["--hostname-override=n", *flags]).process.serving for flags in ([], ["--legacy-flag-defaults"])
    )
    assert closed == CLOSED(trusts_cluster_ca=True)
    assert opened == Serving(anonymous=True, token_reviews=False, access_reviews=False, read_only_port=10255)


def test_flags_about_resources_find_their_place():
    config = load(
        shlex.split(
            "--max-pods=29 --pods-per-core=2 --kube-reserved=cpu=100m,memory=1Gi --system-reserved cpu=1 "
            "--reserved-cpus=0-1 --local-storage-capacity-isolation=false --experimental-allocatable-ignore-eviction "
            "--capacity=cpu=8 --extended-resources=nvidia.com/gpu=2 --capacity-from=cgroup"
        )
    )
    assert config.node.resources == Resources(
        max_pods=29,
        pods_per_core=2,
        kube_reserved={"memory": Quantity.parse("1Gi")},
        system_reserved={"cpu": Quantity.parse("2")},  # the number of reserved CPUs, as in a kubelet
        reserved_cpus="0-1",
        local_storage=False,
        ignore_eviction=True,
        overrides={"cpu": Quantity.parse("8")},
        extended={"nvidia.com/gpu": Quantity.parse("2")},
    )
    assert config.process.host.from_cgroup


def test_flags_about_eviction_find_their_place():
    config = load(
        shlex.split(
            "--eviction-hard=memory.available<500Mi,nodefs.available<10% --eviction-soft=memory.available<1Gi "
            "--eviction-soft-grace-period=memory.available=1m --eviction-minimum-reclaim=memory.available=64Mi "
            "--eviction-pressure-transition-period=30s --sensor-interval=500ms"
        )
    )
    reclaim = ThresholdValue(64 * 2**20)
    assert config.node.eviction == Eviction(
        hard=(
            Threshold("memory.available", ThresholdValue(500 * 2**20), reclaim),
            Threshold("nodefs.available", ThresholdValue(percent=10.0)),
        ),
        soft=(Threshold("memory.available", ThresholdValue(2**30), reclaim, 60.0),),
        transition_seconds=30,
    )
    assert config.process.host.sensor_seconds == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hostname-override=a_b"], 'invalid node name "a_b".*--hostname-override'),
        (["--hostname-override= "], "empty hostname is invalid"),
        (["--node-status-update-frequency=10"], '"10" for "--node-status-update-frequency" flag: time: missing unit'),
        (["--eviction-hard=memory.available=5"], 'for "--eviction-hard" flag: malformed pair, expect string<string'),
        (["--system-reserved=gpu=1"], '--system-reserved value failed to parse: cannot reserve "gpu"'),
        (["--node-labels=node-role.kubernetes.io/x="], "failed to validate kubelet flags: unknown 'kubernetes.io'"),
        (["--eviction-soft=memory.available<1Gi"], "grace period must be specified"),
        (["--capacity=cpu=many"], '--capacity value failed to parse: "many" for "cpu"'),
        (["--extended-resources=a.b/c=-1"], '--extended-resources value failed to parse: "a.b/c" cannot be negative'),
        (["--capacity-from=moon"], "--capacity-from must be host or cgroup"),
        (["--sensor-interval=0s"], "--sensor-interval must be greater than 0"),
        (["--pod-usage=disk=1"], '--pod-usage must be cpu or memory, not "disk"'),
        (["--pod-usage=cpu=60%"], '--pod-usage cpu: "60%" is no share; write "60% of request" or "80% of limit"'),
        (["--pod-commands=run"], '--pod-commands must be understand or ignore, not "run"'),
        (["--status-page=some"], '--status-page must be loopback, all or none, not "some"'),
    ],
)
def test_a_wrong_flag_is_named(arguments, message):
    with pytest.raises(ConfigError, match=message):
        load(arguments)


def test_what_is_said_about_pods_finds_its_place():
    flags = ["--pods=refuse", "--job-run-for=1m", "--pod-commands=ignore", "--allowed-unsafe-sysctls=kernel.msg*,net.*"]
    assert load(["--hostname-override=n", *flags]).node.pods == Pods(
        mode="refuse", job_run_seconds=60, commands="ignore", allowed_sysctls=("kernel.msg*", "net.*")
    )


def test_what_pods_use_is_said_by_a_flag_or_a_field(tmp_path):
    rules = {"cpu": "60% of request", "memory": "80% of limit"}
    assert load([]).node.pods.usage == {}
    assert load(["--pod-usage=cpu=60% of request,memory=80% of limit"]).node.pods.usage == rules
    file = tmp_path / "kubelet.yaml"
    kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n---\n"
    fake = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: FakeKubeletConfiguration\n"
    file.write_text(f"{kubelet}{fake}podUsage: {{cpu: 60% of request, memory: 80% of limit}}\n")
    assert load([f"--config={file}"]).node.pods.usage == rules


def test_who_sees_the_page_is_said_by_a_flag_or_a_field(tmp_path):
    assert load([]).process.serving.status_page == "loopback"
    assert load(["--status-page=all"]).process.serving.status_page == "all"
    file = tmp_path / "kubelet.yaml"
    kubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n---\n"
    fake = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: FakeKubeletConfiguration\nstatusPage: none\n"
    file.write_text(kubelet + fake)
    assert load([f"--config={file}"]).process.serving.status_page == "none"


def test_the_start_line_of_an_eks_node_works():
    labels = ",".join(f"eks.amazonaws.com/label-{number}=x" for number in range(7))
    config = load(
        shlex.split(
            "--kubeconfig /k --container-runtime-endpoint unix:///run/containerd/containerd.sock "
            "--image-credential-provider-config /c.json --image-credential-provider-bin-dir /bin "
            "--node-ip=10.20.11.32 --pod-infra-container-image=example.com/pause:3.5 --v=2 --cloud-provider=aws "
            f"--container-runtime=remote --node-labels={labels} --max-pods=29 --hostname-override=ip-10-20-11-32"
        )
    )
    assert (len(config.node.registration.labels), config.node.resources.max_pods) == (7, 29)
    assert [str(ip) for ip in config.node.node_ips] == ["10.20.11.32"]
    assert config.node.registration.external_cloud_provider is False


def test_the_periods_of_a_graceful_shutdown_find_their_place(tmp_path):
    file = tmp_path / "kubelet.yaml"
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    file.write_text(head + "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n")
    assert load([f"--config={file}"]).node.shutdown.grace_periods == ((0, 20), (2_000_000_000, 10))
    file.write_text(head + "shutdownGracePeriodByPodPriority: [{priority: 5, shutdownGracePeriodSeconds: 7}]\n")
    assert load([f"--config={file}"]).node.shutdown.grace_periods == ((5, 7),)
