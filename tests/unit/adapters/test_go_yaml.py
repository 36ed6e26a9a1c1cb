import pytest

from agent.adapters.go_yaml import load_documents
from agent.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &b [*b, *b]\n" for n in range(40)), "excessive aliasing"),
        ("[" * 100_000, "exceeded max depth"),
        ('{"a":' * 100_000, "exceeded max depth"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
        ("a: !!bool x", "no boolean"),
        ("a: !!timestamp x", "yaml: "),
        ("a: !!int x", "invalid literal"),
    ],
    ids=["alias bomb", "deep YAML", "deep JSON", "long number", "no boolean", "no time", "no number"],
)
def test_what_would_take_all_memory_or_does_not_fit_its_tag_is_a_config_error(text, fault):
    with pytest.raises(ConfigError, match=fault):
        load_documents(text)
