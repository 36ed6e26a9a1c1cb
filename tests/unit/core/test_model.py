import pytest

from agent.core.model import is_newer


@pytest.mark.parametrize(
    ("left", "right", "newer"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("9", "9", False),
        ("09", "9", False),
        ("9" * 5000, "9", True),
        ("9", "9" * 5000, False),
        ("1" + "0" * 5000, "9" * 5000, True),
        ("٣", "1", False),
        ("10\n", "9", False),
        ("b", "a", False),
        ("", "", False),
    ],
)
def test_versions_are_compared_as_numbers_of_any_length_and_nothing_else_is(left, right, newer):
    assert is_newer(left, right) is newer
