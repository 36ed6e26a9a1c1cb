import pytest

from agent.adapters.settings import effective
from agent.adapters.settings.go_json import encode, get_path
from agent.adapters.settings.schema import KUBELET

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def kubelet(tmp_path):
    """The effective KubeletConfiguration for a file, flags and one drop-in."""

    def load(text, *flags, drop_in=None):
        (tmp_path / "config.yaml").write_text(HEADER + text)
        arguments = [f"--config={tmp_path / 'config.yaml'}", *flags]
        if drop_in is not None:
            (tmp_path / "conf.d").mkdir()
            (tmp_path / "conf.d" / "a.conf").write_text(HEADER + drop_in)
            arguments.append(f"--config-dir={tmp_path / 'conf.d'}")
        return effective(arguments).kubelet

    return load


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("maxPods: 0", "maxPods", 110),
        ("syncFrequency: 0s", "syncFrequency", "1m0s"),
        ("logging: {flushFrequency: 0}", "logging.flushFrequency", "5s"),
        ("logging: {flushFrequency: 0s}", "logging.flushFrequency", "5s"),
        ("logging: {flushFrequency: 1000000000}", "logging.flushFrequency", 1000000000),
        ("podPidsLimit: -7", "podPidsLimit", -1),
        ("syncFrequency: 8760h0m0.000000001s", "syncFrequency", "8760h0m0.000000001s"),
        ("nodeStatusUpdateFrequency: 20s", "nodeStatusReportFrequency", "20s"),
        ("nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m", "nodeStatusReportFrequency", "1m0s"),
        ("maxParallelImagePulls: 2", "serializeImagePulls", False),
        ("maxParallelImagePulls: 1", "serializeImagePulls", True),
        ("featureGates: {KubeletCrashLoopBackOffMax: false}", "crashLoopBackOff.maxContainerRestartPeriod", None),
    ],
)
def test_a_default_where_nothing_or_zero_is_given(kubelet, text, path, value):
    assert get_path(kubelet(text), path) == value


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("healthzPort: 0", "healthzPort", 0),
        ("registryPullQPS: 0", "registryPullQPS", 0),
        ("resolvConf: ''", "resolvConf", ""),
        ("cgroupsPerQOS: false\nenforceNodeAllocatable: []", "enforceNodeAllocatable", []),
    ],
)
def test_zero_is_a_value_where_go_has_a_pointer(kubelet, text, path, value):
    assert get_path(kubelet(text), path) == value


def test_null_in_a_drop_in_takes_the_value_of_the_file_away(kubelet):
    merged = kubelet("clusterDomain: a\nmaxPods: 5", drop_in="clusterDomain: null\nmaxPods: null\nevictionHard: null")
    assert (merged["clusterDomain"], merged["maxPods"], merged["evictionHard"]) == ("", 110, {})


def test_feature_gates_of_flags_and_files_are_merged_by_key(kubelet):
    merged = kubelet(
        "featureGates: {KubeletPSI: true, ContextualLogging: true}",
        "--feature-gates=ContextualLogging=false",
        drop_in="featureGates: {NodeSwap: true}",
    )
    assert merged["featureGates"] == {"KubeletPSI": True, "NodeSwap": True, "ContextualLogging": False}


def test_other_maps_of_flags_replace_those_of_files(kubelet):
    merged = kubelet("kubeReserved: {cpu: 1m, memory: 1Mi}", "--kube-reserved=cpu=2m")
    assert merged["kubeReserved"] == {"cpu": "2m"}


def test_vmodule_of_flags_adds_to_that_of_files(kubelet):
    merged = kubelet("logging: {vmodule: [{filePattern: a, verbosity: 1}]}", "--vmodule=b=2")
    assert [item["filePattern"] for item in merged["logging"]["vmodule"]] == ["a", "b"]


def test_a_list_of_cpus_takes_the_place_of_reserved_cpu(kubelet):
    merged = kubelet("kubeReserved: {cpu: '1', memory: 1Gi}\nsystemReserved: {cpu: '1'}", "--reserved-cpus=0-2,5")
    assert (merged["kubeReserved"], merged["systemReserved"]) == ({"memory": "1Gi"}, {"cpu": "4"})


def test_what_is_printed_leaves_out_what_go_omits(kubelet):
    shown = encode(KUBELET, kubelet("healthzPort: 0\nclusterDomain: ''"))
    assert shown["healthzPort"] == 0
    assert shown["shutdownGracePeriod"] == "0s"
    assert shown["authentication"]["x509"] == {}
    assert not {"clusterDomain", "podsPerCore", "maxParallelImagePulls", "tracing", "clusterDNS"} & shown.keys()
