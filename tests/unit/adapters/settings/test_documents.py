import pytest

from agent.adapters.settings.documents import parse
from agent.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &b [*b, *b]\n" for n in range(40)), "excessive aliasing"),
        ("[" * 100_000, "exceeded max depth"),
        ('{"a":' * 100_000, "exceeded max depth"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
    ],
    ids=["alias bomb", "deep YAML", "deep JSON", "long number"],
)
def test_a_file_that_would_take_all_memory_or_stack_is_a_config_error(text, fault):
    with pytest.raises(ConfigError, match=fault):
        parse(text)
