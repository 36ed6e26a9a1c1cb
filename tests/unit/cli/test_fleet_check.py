import pytest

HEADER = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: Fleet\n"


@pytest.fixture
def fleet_file(tmp_path, monkeypatch):
    """Writes fleet.yaml with these fields into the folder where the user stands."""
    monkeypatch.chdir(tmp_path)
    return lambda fields: (tmp_path / "fleet.yaml").write_text(HEADER + fields)


def test_the_groups_are_printed_as_a_table(fake_kubelet, fleet_file):
    fleet_file(
        "groups:\n- {name: big, count: 3, instanceType: m6i.4xlarge, zones: {us-east-1a: 2, us-east-1b: 1}}\n"
        "- {name: none, count: 0}\n- {name: one, count: 1, extendedResources: {example.com/a: 2}}\n"
    )
    checked = fake_kubelet("fleet", "check", "-f", "fleet.yaml")
    assert (checked.returncode, checked.stderr) == (0, "")
    *rows, last = checked.stdout.splitlines()
    assert [row.split("   ")[0].strip() for row in rows] == ["GROUP", "big", "none", "one"]
    assert [cell.strip() for cell in rows[1].split("   ") if cell] == [
        "big",
        "3",
        "big-0 ... big-2",
        "m6i.4xlarge",
        "us-east-1a: 2, us-east-1b: 1",
        "cpu=16,memory=65436Mi,ephemeral-storage=96636764000,pods=234",
    ]
    assert rows[2].split() == ["none", "0", "-", "-", "-", "-"]
    assert rows[3].endswith("cpu=4,memory=16284Mi,ephemeral-storage=96636764000,pods=110,example.com/a=2")
    assert last == "Fleet fleet is valid: 4 nodes."


def test_all_errors_are_printed_and_the_code_is_1(fake_kubelet, fleet_file):
    fleet_file("groups:\n- {name: a, cuont: 1}\n- {name: b}\n")
    checked = fake_kubelet("fleet", "check", "-f", "fleet.yaml")
    assert (checked.returncode, checked.stdout) == (1, "")
    assert checked.stderr.splitlines() == [
        "error: fleet.yaml: groups[0].cuont: unknown field; did you mean count?",
        "error: fleet.yaml: groups[1].count: missing; only a group with like needs none",
    ]


def test_what_is_no_text_in_a_file_does_not_reach_the_terminal(fake_kubelet, fleet_file):
    fleet_file('groups:\n- {name: a, count: 1, "\\e[31m": 1}\n')
    checked = fake_kubelet("fleet", "check", "-f", "fleet.yaml")
    assert checked.stderr == "error: fleet.yaml: groups[0].\N{REPLACEMENT CHARACTER}[31m: unknown field\n"


def test_kubelets_flags_may_stand_before_and_after_the_command(fake_kubelet):
    checked = fake_kubelet("--max-pods=7", "fleet", "--count", "2", "check", "--kube-reserved=cpu=1")
    assert checked.stdout.splitlines()[1].split() == [
        *("node", "2", "node-0", "...", "node-1", "-", "-"),
        "cpu=3,memory=16284Mi,ephemeral-storage=96636764000,pods=7",
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["check"], "error: a fleet needs --count N, --like FILE, -f FILE or --adopt LABEL=VALUE\n"),
        (
            ["chekc"],
            "error: unknown command chekc; did you mean check?\nhint: fake-kubelet fleet --help lists the commands\n",
        ),
        (
            ["check", "--cuont", "3"],
            "error: failed to parse kubelet flag: unknown flag: --cuont; did you mean --count?\n",
        ),
        (["check", "--count", "3", "more"], "error: unexpected argument more\n"),
    ],
)
def test_a_wrong_command_line_is_one_error(fake_kubelet, arguments, error):
    ended = fake_kubelet("fleet", *arguments)
    assert (ended.returncode, ended.stderr) == (1, error)


def test_help_shows_the_flags_of_a_fleet(fake_kubelet):
    shown = fake_kubelet("fleet", "check", "--help").stdout
    for flag in ("-f, --filename FILE", "--count N", "--name-template TEMPLATE", "--like FILE", "--keep-provider-ids"):
        assert flag in shown
