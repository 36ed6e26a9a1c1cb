import pytest

from agent.adapters.settings.effective import effective
from agent.adapters.settings.zpages import zpages


def test_configz_shows_the_effective_configuration_as_a_kubelet_does():
    shown = zpages(effective(["--port=10260"])).configz["kubeletconfig"]
    assert list(shown)[:2] == ["kind", "apiVersion"]
    assert (shown["port"], shown["authorization"]["mode"]) == (10260, "Webhook")


def test_flagz_shows_flags_as_given_or_their_defaults_whatever_a_file_says(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: 10270\n")
    told = zpages(effective([f"--config={file}", "--max-pods=7", "--node-labels=b=2,a=1", "--v=3"])).flagz
    assert told["port"] == "10250"
    assert told["max-pods"] == "7"
    assert told["node-labels"] == "a=1,b=2"
    assert told["register-node"] == "true"
    assert told["config"] == str(file)
    assert "on-node-deleted" not in told  # no flag of a kubelet's


def test_flagz_shows_the_defaults_that_hold():
    names = ("anonymous-auth", "authorization-mode", "read-only-port", "eviction-hard")
    ours, legacy = (zpages(effective(given)).flagz for given in ([], ["--legacy-flag-defaults"]))
    assert [ours[name] for name in names[:3]] == ["false", "Webhook", "0"]
    assert ours["eviction-hard"].startswith("imagefs.available<15%,")
    assert [legacy[name] for name in names] == ["true", "AlwaysAllow", "10255", ""]


def test_what_may_be_open_to_strangers_tells_no_secret_that_a_flag_or_file_holds(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "staticPodURL: https://me:s3cret@example.com/pods\nstaticPodURLHeader: {Authorization: [Bearer s3cret]}\n"
    )
    flags = [
        "--manifest-url=https://me:s3cret@example.com/pods?a=b@c",
        "--manifest-url-header=X-Token:s3cret,X-Token:s3cret,Authorization:s3cret",
        "--storage-driver-password=s3cret",
    ]
    for given in ([f"--config={file}"], flags):
        assert "s3cret" not in str(zpages(effective(given)))
    told = zpages(effective(flags))
    assert told.flagz["manifest-url"] == "https://<masked>@example.com/pods?a=b@c"
    assert told.flagz["manifest-url-header"] == "Authorization:<masked>,X-Token:<masked>"
    assert told.configz["kubeletconfig"]["staticPodURLHeader"] == {
        "Authorization": ["<masked>"],
        "X-Token": ["<masked>"],
    }


def test_the_settings_themselves_keep_their_secrets():
    settings = effective(["--manifest-url-header=Authorization:s3cret"])
    zpages(settings)
    assert settings.kubelet["staticPodURLHeader"] == {"Authorization": ["s3cret"]}


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--feature-gates=NodeSwap=true", "NodeSwap=true"),
        ("--eviction-hard=nodefs.available<5%,memory.available<1Gi", "memory.available<1Gi,nodefs.available<5%"),
        ("--register-with-taints=a=b:NoSchedule,c:NoExecute", "a=b:NoSchedule,c=:NoExecute"),
        (
            "--reserved-memory=1:memory=2Gi;0:memory=1024Mi,hugepages-2Mi=2Mi",
            "0:hugepages-2Mi=2Mi,memory=1Gi,1:memory=2Gi",
        ),
        ("--vmodule=a=1,b=2", "a=1,b=2"),
        ("--cluster-dns=a,b", "[a,b]"),
        ("--seccomp-default", "true"),
    ],
)
def test_a_value_is_told_as_pflag_prints_it(flag, told):
    name = flag.removeprefix("--").partition("=")[0]
    assert zpages(effective([flag])).flagz[name] == told


def test_what_is_empty_by_default_is_told_as_pflag_prints_it():
    told = zpages(effective([])).flagz
    names = ("help", "version", "minimum-container-ttl-duration", "register-with-taints", "vmodule", "cluster-dns")
    assert [told[name] for name in names] == ["false", "false", "0s", "", "", "[]"]
