import pytest

from agent.adapters.settings.pflag import parse_flags
from agent.adapters.settings.table import FLAGS
from agent.core.errors import ConfigError


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--max-pods=29"], {"max-pods": 29}),
        (["--max-pods", "29"], {"max-pods": 29}),
        (["--max_pods", "29"], {"max-pods": 29}),
        (["--max-pods=1", "--max-pods=2"], {"max-pods": 2}),
        (
            ["--max-pods=0x1F", "--event-burst=017", "--event-qps=0b11"],
            {"max-pods": 31, "event-burst": 15, "event-qps": 3},
        ),
        (["--register-node"], {"register-node": True}),
        (["--register-node=F", "--runonce=1"], {"register-node": False, "runonce": True}),
        (["-v", "2"], {"v": 2}),
        (["-v=2"], {"v": 2}),
        (["-v2"], {"v": 2}),
        (["-hv2"], {"help": True, "v": 2}),
        (["--v=2"], {"v": 2}),
        (["--cluster-dns=a,b", "--cluster-dns", "c"], {"cluster-dns": ["a", "b", "c"]}),
        (["--cluster-dns="], {"cluster-dns": []}),
        (['--cluster-dns="a,b",c'], {"cluster-dns": ["a,b", "c"]}),
        (
            ["--kube-reserved=cpu=1, memory = 2", "--kube-reserved=cpu=3"],
            {"kube-reserved": {"cpu": "3", "memory": "2"}},
        ),
        (["--cpu-manager-policy-options=a=b,c=d"], {"cpu-manager-policy-options": {"a": "b,c=d"}}),
        (["--eviction-hard=a<b<c"], {"eviction-hard": {"a": "b<c"}}),
        (["--node-labels=a,b=c"], {"node-labels": {"a": "", "b": "c"}}),
        (["--feature-gates=A=true,B=0"], {"feature-gates": {"A": True, "B": False}}),
        (["--manifest-url-header=a:1,a:2"], {"manifest-url-header": {"a": ["1", "2"]}}),
        (["--sync-frequency=90s"], {"sync-frequency": "1m30s"}),
        (["--sync-frequency=8760h0m0.000000001s"], {"sync-frequency": "8760h0m0.000000001s"}),
        (["--address="], {"address": None}),
        (["--log-json-info-buffer-size=1024Ki"], {"log-json-info-buffer-size": "1Mi"}),
        (["--version"], {"version": "true"}),
        (["--kubeconfig", "--v=2"], {"kubeconfig": "--v=2"}),
    ],
)
def test_flags_are_read_as_pflag_reads_them(arguments, values):
    assert parse_flags(arguments, FLAGS).values == values


def test_words_end_at_a_command_whose_own_the_rest_is():
    line = parse_flags(["--max-pods=1", "config", "--max-pods=2"], FLAGS, stop={"config"})
    assert (line.values, line.words) == ({"max-pods": 1}, ["config", "--max-pods=2"])


def test_two_dashes_end_the_flags():
    assert parse_flags(["--", "--max-pods=2"], FLAGS).words == ["--max-pods=2"]


def test_an_optional_value_is_not_taken_from_the_next_word():
    assert parse_flags(["--register-node", "false"], FLAGS).words == ["false"]


@pytest.mark.parametrize("flag", ["--max-pods=٣", "--v=٣", "--reserved-memory=٣:memory=1Gi", "--sync-frequency=٣s"])
def test_a_digit_is_one_of_ten(flag):
    with pytest.raises(ConfigError, match="invalid argument"):
        parse_flags([flag], FLAGS)


def test_a_mistake_is_told_with_the_flag_and_what_was_given():
    with pytest.raises(ConfigError) as refused:
        parse_flags(["--max-pods=1e3"], FLAGS)
    assert str(refused.value) == (
        'failed to parse kubelet flag: invalid argument "1e3" for "--max-pods" flag: '
        'strconv.ParseInt: parsing "1e3": invalid syntax'
    )
