import pytest

from agent import __version__
from agent.adapters.settings import Flags, load
from agent.core.config import Config, Eviction, Heartbeat, Registration, Resources, Serving
from agent.core.errors import ConfigError
from agent.core.eviction import Amount, Threshold
from agent.core.labels import Taint
from agent.core.quantity import Quantity


def test_without_flags_everything_is_the_default():
    config = load(Flags(hostname_override="n1"))
    versions = {
        "kubelet_version": f"v1.36.3+fake-kubelet.{__version__}",
        "container_runtime_version": f"fake://{__version__}",
    }
    assert config == Config(node_name="n1", **versions)


def test_each_flag_finds_its_place():
    config = load(
        Flags(
            hostname_override=" N1 ",
            node_labels=["a=1,b=2", "b=3,c"],
            register_node=False,
            register_with_taints="t=v:NoSchedule",
            provider_id="kind://x",
            node_status_update_frequency="20s",
            node_status_report_frequency="1m",
            node_lease_duration_seconds=60,
            max_pods=29,
            pods_per_core=2,
            kube_reserved=["cpu=100m,memory=1Gi"],
            system_reserved=["cpu=1"],
            eviction_hard=["memory.available<500Mi,nodefs.available<10%"],
            eviction_pressure_transition_period="30s",
            port=10260,
            healthz_port=0,
            healthz_bind_address="0.0.0.0",
            root_dir="/data",
            kubeconfig="/k",
        )
    )
    assert config.node_name == "n1"
    assert config.registration == Registration(
        register_node=False,
        labels={"a": "1", "b": "3", "c": ""},
        taints=(Taint("t", "v", "NoSchedule"),),
        provider_id="kind://x",
    )
    assert config.heartbeat == Heartbeat(status_update_seconds=20, status_report_seconds=60, lease_duration_seconds=60)
    assert config.resources == Resources(
        max_pods=29,
        pods_per_core=2,
        kube_reserved={"cpu": Quantity.parse("100m"), "memory": Quantity.parse("1Gi")},
        system_reserved={"cpu": Quantity.parse("1")},
    )
    assert config.eviction == Eviction(
        hard=(Threshold("memory.available", Amount(500 * 2**20)), Threshold("nodefs.available", Amount(percent=10.0))),
        transition_seconds=30,
    )
    assert config.serving == Serving(port=10260, healthz_port=0, healthz_bind_address="0.0.0.0")
    assert (config.root_dir, config.kubeconfig) == ("/data", "/k")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (Flags(hostname_override="a_b"), 'invalid node name "a_b".*--hostname-override'),
        (Flags(hostname_override=" "), "empty hostname is invalid"),
        (Flags(node_status_update_frequency="10"), '"10" for --node-status-update-frequency: time: missing unit'),
        (Flags(eviction_hard=["memory.available=5"]), "for --eviction-hard: malformed pair, expect string<string"),
        (Flags(system_reserved=["gpu=1"]), '--system-reserved value failed to parse: cannot reserve "gpu"'),
        (Flags(node_labels=["node-role.kubernetes.io/x="]), "--node-labels"),
    ],
)
def test_a_wrong_flag_is_named(flags, message):
    with pytest.raises(ConfigError, match=message):
        load(flags)
