import pytest

from agent.adapters.settings import effective, load
from agent.core.errors import ConfigError
from agent.core.pressure import DEFAULT_HARD

KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
FAKE = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: FakeKubeletConfiguration\n"


@pytest.fixture
def config(tmp_path):
    """Writes a config file and gives its flag."""

    def write(text, header=KUBELET):
        file = tmp_path / "config.yaml"
        file.write_text(header + text)
        return f"--config={file}"

    return write


@pytest.fixture
def drop_ins(tmp_path):
    """Writes drop-ins and gives their flag."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / "conf.d" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(KUBELET + text)
        return f"--config-dir={tmp_path / 'conf.d'}"

    return write


def test_flags_win_over_drop_ins_and_those_over_the_file(config, drop_ins):
    given = [
        config("maxPods: 1\npodsPerCore: 1\nport: 1\n"),
        drop_ins({"a.conf": "podsPerCore: 2\nport: 2"}),
        "--port=3",
    ]
    settings = effective(given)
    assert [settings.kubelet[name] for name in ("maxPods", "podsPerCore", "port")] == [1, 2, 3]


def test_where_a_value_came_from_is_remembered(config, drop_ins):
    file = config("maxPods: 1\nauthentication: {anonymous: {enabled: true}}\n")
    directory = drop_ins({"a.conf": "podsPerCore: 2"})
    origins = effective([file, directory, "--port=3", "--sensor-interval=2s"]).origins
    assert origins == {
        "maxPods": file.partition("=")[2],
        "authentication.anonymous.enabled": file.partition("=")[2],
        "podsPerCore": f"{directory.partition('=')[2]}/a.conf",
        "port": "--port",
        "sensorInterval": "--sensor-interval",
    }


def test_flags_alone_have_the_secure_defaults_and_thresholds_of_an_empty_file(config):
    flags = ["--max-pods=3", "--feature-gates=KubeletCrashLoopBackOffMax=false"]
    alone, with_file = effective(flags), effective([config(""), *flags])
    assert (alone.kubelet, alone.fake, alone.origins) == (with_file.kubelet, with_file.fake, with_file.origins)
    assert (alone.kubelet["authentication"]["anonymous"]["enabled"], alone.kubelet["readOnlyPort"]) == (False, 0)
    assert (alone.kubelet["authorization"]["mode"], alone.kubelet["evictionHard"]) == ("Webhook", DEFAULT_HARD)


def test_drop_ins_alone_have_those_defaults_too(drop_ins):
    settings = effective([drop_ins({"a.conf": "readOnlyPort: 10255\nevictionHard: {memory.available: 1Gi}"})])
    assert settings.kubelet["authorization"]["mode"] == "Webhook"
    assert (settings.kubelet["readOnlyPort"], settings.kubelet["evictionHard"]["memory.available"]) == (10255, "1Gi")


def test_legacy_flag_defaults_are_those_of_a_kubelet_without_a_file_and_change_no_file(config):
    legacy = effective(["--legacy-flag-defaults"]).kubelet
    assert (legacy["authentication"]["anonymous"]["enabled"], legacy["readOnlyPort"]) == (True, 10255)
    assert (legacy["authorization"]["mode"], legacy["evictionHard"]) == ("AlwaysAllow", {})
    given = effective(["--legacy-flag-defaults", "--read-only-port=0", "--authorization-mode=Webhook"]).kubelet
    assert (given["readOnlyPort"], given["authorization"]["mode"]) == (0, "Webhook")
    assert effective(["--legacy-flag-defaults=false"]).kubelet == effective([]).kubelet
    file = config("")
    assert effective([file, "--legacy-flag-defaults"]).kubelet == effective([file]).kubelet


def test_the_clusters_ca_is_trusted_where_neither_file_nor_flag_says_anything_about_client_cas(config):
    assert effective([]).trusts_cluster_ca
    assert effective([config("authentication: {webhook: {enabled: true}}")]).trusts_cluster_ca
    assert not effective(["--client-ca-file=/ca"]).trusts_cluster_ca
    assert not effective(["--client-ca-file="]).trusts_cluster_ca  # none at all
    assert not effective([config("authentication: {x509: {clientCAFile: /ca}}")]).trusts_cluster_ca
    assert not effective(["--legacy-flag-defaults"]).trusts_cluster_ca


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [
        ("evictionHard: {memory.available: 1Gi}", {"memory.available": "1Gi"}),
        ("evictionHard: {}", {}),
        ("evictionHard: null", DEFAULT_HARD),
        (
            "evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true",
            {**DEFAULT_HARD, "memory.available": "1Gi"},
        ),
    ],
)
def test_thresholds_of_a_file_replace_the_default_unless_merged(config, text, thresholds):
    assert effective([config(text)]).kubelet["evictionHard"] == thresholds


def test_drop_ins_merge_maps_and_replace_lists_in_lexical_order(config, drop_ins):
    kubelet = effective(
        [
            config("kubeReserved: {cpu: 100m, memory: 1Gi}\nclusterDNS: [10.0.0.1, 10.0.0.2]\n"),
            drop_ins(
                {
                    "20.conf": "kubeReserved: {cpu: 300m}",
                    "10.conf": "kubeReserved: {cpu: 200m}\nclusterDNS: [10.0.0.3]",
                    "30.yaml": "kubeReserved: {cpu: 400m}",
                }
            ),
        ]
    ).kubelet
    assert kubelet["kubeReserved"] == {"cpu": "300m", "memory": "1Gi"}
    assert kubelet["clusterDNS"] == ["10.0.0.3"]


def test_our_own_settings_are_a_second_document_and_flags_win_over_them(config):
    own = f"maxPods: 7\n---\n{FAKE}sensorInterval: 3s\ncapacity: {{cpu: '8'}}\ncapacityFrom: cgroup\n"
    settings = load([config(own), "--sensor-interval=4s", "--hostname-override=n1"])
    host = settings.process.host
    assert (settings.node.resources.max_pods, host.from_cgroup, host.sensor_seconds) == (7, True, 4.0)


def test_our_own_document_alone_is_refused_as_a_file_without_kubelets(config):
    with pytest.raises(ConfigError, match="Object 'Kind' is missing"):
        effective([config("sensorInterval: 3s", header=FAKE)])


def test_a_field_of_ours_that_does_not_exist_is_a_mistake(config):
    with pytest.raises(ConfigError, match='FakeKubeletConfiguration: unknown field "sensorIntervall"'):
        effective([config(f"---\n{FAKE}sensorIntervall: 3s")])


def test_unknown_and_double_fields_of_kubelets_are_told_and_passed_over(config):
    settings = effective([config("maxPods: 1\nmaxPods: 2\nnoSuchField: 1\nlogging: {foo: 1}\n")])
    (note,) = [note for note in settings.notes if note.phrase.startswith("Using lenient decoding")]
    assert settings.kubelet["maxPods"] == 2
    assert note.fields["err"] == (
        'strict decoding error: line 4: key "maxPods" already set in map, '
        'unknown field "logging.foo", unknown field "noSuchField"'
    )


def test_what_does_nothing_here_is_told_once(config):
    settings = effective([config("cgroupDriver: systemd\nmaxPods: 5\n"), "--cluster-domain=x", "--max-pods=6"])
    told = {note.phrase: note for note in settings.notes}
    assert told["Flags are accepted and have no effect here"].fields == {"flags": "--cluster-domain"}
    assert told["Fields are accepted and have no effect here"].fields == {"fields": "cgroupDriver"}
    assert told["Flags are deprecated by kubelet in favour of its config file"].verbosity == 1


@pytest.mark.parametrize(
    ("flag", "version"),
    [
        ("--pod-infra-container-image=x", "v1.35"),
        ("--network-plugin=cni", "v1.24"),
        ("--register-schedulable", "v1.34"),
        ("--container-runtime=remote", "v1.27"),
        ("--allow-privileged=true", "v1.15"),
        ("--require-kubeconfig", "v1.10"),
        ("--cadvisor-port=0", "v1.12"),
        ("--enable-cadvisor-json-endpoints=true", "v1.21"),
        ("--seccomp-profile-root=/s", "v1.23"),
        ("--experimental-bootstrap-kubeconfig=/b", "v1.23"),
        ("--docker=unix:///var/run/docker.sock", "v1.24"),
        ("--docker_root=/d", "v1.24"),
        ("--docker-tls", "v1.24"),
        ("--cloud-provider=aws", "v1.27"),
    ],
)
def test_what_kubelet_removed_is_a_warning_with_the_version_unless_strict(flag, version):
    (note,) = [note for note in effective([flag]).notes if note.verbosity < 0]
    assert note.fields["removedIn"] == version
    with pytest.raises(ConfigError, match="failed to parse kubelet flag: "):
        effective([flag, "--strict-flags"])


def test_the_old_name_of_the_bootstrap_kubeconfig_still_means_it():
    old, new = "--experimental-bootstrap-kubeconfig=/old", "--bootstrap-kubeconfig=/new"
    assert load([old]).process.certificates.bootstrap_kubeconfig == "/old"
    assert load([old, new]).process.certificates.bootstrap_kubeconfig == "/new"


def test_relative_paths_are_relative_to_the_file(config, tmp_path):
    kubelet = effective([config("staticPodPath: a/../manifests\nresolvConf: ''\n")]).kubelet
    assert (kubelet["staticPodPath"], kubelet["resolvConf"]) == (f"{tmp_path}/manifests", "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("off", False),
        ("'yes'", "yes"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("0o644", 420),
        ("0644", 420),
        ("09", 9),
        ("0x1F", 31),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("=", "="),
        ("~", None),
        ("", None),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
    ],
)
def test_yaml_scalars_are_what_go_makes_of_them(text, value):
    from agent.adapters.go_yaml import load_documents  # noqa: PLC0415

    (document,) = load_documents(f"a: {text}\n").documents
    assert (document["a"], type(document["a"])) == (value, type(value))


def test_the_example_file_is_valid_and_changes_nothing(tmp_path):
    example = effective(["--config=config/kubelet.yaml"])
    empty = tmp_path / "empty.yaml"
    empty.write_text(KUBELET)
    assert (example.kubelet, example.fake) == (
        effective([f"--config={empty}"]).kubelet,
        effective([f"--config={empty}"]).fake,
    )
    assert not [note for note in example.notes if note.verbosity < 2]


def test_a_drop_in_may_be_ours_alone(tmp_path):
    (tmp_path / "a.conf").write_text(f"{FAKE}sensorInterval: 7s\n")
    assert effective([f"--config-dir={tmp_path}"]).fake["sensorInterval"] == "7s"


@pytest.mark.parametrize(
    ("text", "field", "go_type"),
    [
        ("logging: 1", "KubeletConfiguration.logging", "v1.LoggingConfiguration"),
        ("authentication: 1", "KubeletConfiguration.authentication", "v1beta1.KubeletAuthentication"),
        ("authorization: {mode: 1}", "KubeletAuthorization.authorization.mode", "v1beta1.KubeletAuthorizationMode"),
        ("enableServer: 1", "KubeletConfiguration.enableServer", "bool"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_name_of_the_type_in_go(config, text, field, go_type):
    with pytest.raises(ConfigError, match=f"cannot unmarshal number into Go struct field {field} of type {go_type}$"):
        load([config(text)])
