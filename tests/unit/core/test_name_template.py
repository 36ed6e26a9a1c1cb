import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.errors import ConfigError
from agent.core.name_template import NameTemplate


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpu-{zone}-{index:04}", "gpu-us-east-1a-0007"),
        ("hollow-{index:05}", "hollow-00007"),
        ("{group}-{index}", "workers-7"),
        ("{index}{index:02}", "707"),
        ("no-fields", "no-fields"),
        ("", ""),
    ],
)
def test_fields_stand_for_the_place_of_the_node(text, name):
    assert NameTemplate.parse(text).name(group="workers", zone="us-east-1a", index=7) == name


def test_an_index_that_is_wider_than_its_field_is_printed_as_a_whole():
    assert NameTemplate.parse("n{index:02}").name(group="g", zone="", index=12345) == "n12345"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{zone.__class__}", "{zone.__class__}"),
        ("{index!r}", "{index!r}"),
        ("{index:4}", "{index:4}"),
        ("{index:0999999999}", "{index:0999999999}"),
        ("n{name}", "{name}"),
        ("{}", "{}"),
        ("{0}", "{0}"),
        ("{{index}}", "{"),
        ("{index", "{index"),
        ("index}", "}"),
    ],
)
def test_anything_else_in_braces_is_refused(text, wrong):
    with pytest.raises(ConfigError) as refusal:
        NameTemplate.parse(text)
    assert f": {wrong} is no field; there are {{group}}, {{zone}}, {{index}} and {{index:04}}" in str(refusal.value)


@given(st.text(alphabet="{}:!.[]0aindexzogrup_"))
def test_a_template_gives_names_without_braces_or_is_refused(text):
    try:
        template = NameTemplate.parse(text)
    except ConfigError:
        return
    assert not set("{}") & set(template.name(group="g", zone="z", index=1))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_different_places_have_different_names(left, right):
    template = NameTemplate.parse("n-{index:04}")
    assert (template.name(group="", zone="", index=left) == template.name(group="", zone="", index=right)) is (
        left == right
    )
