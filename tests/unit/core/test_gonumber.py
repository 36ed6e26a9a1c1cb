import pytest

from agent.core.gonumber import parse_int, parse_uint


@pytest.mark.parametrize(("text", "number"), [("2147483647", 2**31 - 1), ("-2147483648", -(2**31)), ("+007", 7)])
def test_a_number_with_a_sign_has_both_its_ends(text, number):
    assert parse_int(text, bits=32) == number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("4294967295", 2**32 - 1)])
def test_a_number_without_a_sign_has_both_its_ends(text, number):
    assert parse_uint(text, bits=32) == number


@pytest.mark.parametrize(
    ("parse", "text", "fault"),
    [
        (parse_int, "2147483648", 'ParseInt: parsing "2147483648": value out of range'),
        (parse_int, "-2147483649", 'ParseInt: parsing "-2147483649": value out of range'),
        (parse_int, "1e3", 'ParseInt: parsing "1e3": invalid syntax'),
        (parse_int, "", 'ParseInt: parsing "": invalid syntax'),
        (parse_uint, "4294967296", 'ParseUint: parsing "4294967296": value out of range'),
        (parse_uint, "-1", 'ParseUint: parsing "-1": invalid syntax'),
        (parse_uint, "٣", 'ParseUint: parsing "٣": invalid syntax'),
    ],
)
def test_what_is_no_number_is_said_in_gos_words(parse, text, fault):
    with pytest.raises(ValueError, match=f"^strconv.{fault}$"):
        parse(text, bits=32)
