from agent.adapters.settings.go_json import leaves
from agent.adapters.settings.pflag import METAVARS, READERS
from agent.adapters.settings.schema import FAKE, KUBELET
from agent.adapters.settings.table import FLAGS
from agent.cli.reference import flags_page


def test_every_flag_is_of_a_known_kind():
    assert {flag.kind for flag in FLAGS.values()} <= READERS.keys()
    assert READERS.keys() == METAVARS.keys()


def test_every_field_of_a_flag_exists():
    fields = {path for struct in (KUBELET, FAKE) for path, _ in leaves(struct)}
    assert {flag.field for flag in FLAGS.values() if flag.field} <= fields


def test_every_setting_of_ours_is_a_flag_too():
    assert set(FAKE.fields) <= {flag.field for flag in FLAGS.values()}


def test_every_flag_that_acts_says_what_it_does():
    assert [flag.name for flag in FLAGS.values() if flag.acts and not flag.help] == []


def test_the_page_of_flags_is_up_to_date():
    with open("docs/flags.md", encoding="utf-8") as page:  # noqa: PTH123
        assert page.read() == flags_page(), "run `python -m agent.cli.reference > docs/flags.md`"
