from agent.adapters.settings.effective import effective
from agent.adapters.settings.zpages import zpages


def test_configz_shows_the_effective_configuration_as_a_kubelet_does():
    shown = zpages(effective(["--port=10260"])).configz["kubeletconfig"]
    assert list(shown)[:2] == ["kind", "apiVersion"]
    assert (shown["port"], shown["authorization"]["mode"]) == (10260, "AlwaysAllow")


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
