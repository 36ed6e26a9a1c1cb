import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.quantity import Quantity, QuantityError, parse_int, parse_uint, same_amount


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("0", "0", 0),
        ("2", "2", 2),
        ("0.5", "500m", 1),
        ("1500m", "1500m", 2),
        ("1.5Gi", "1536Mi", 1610612736),
        ("24684100Ki", "24684100Ki", 25276518400),
        ("1024", "1024", 1024),
        ("1.1Mi", "1153433600m", 1153434),
        ("0.1m", "100u", 1),
        ("1e3", "1e3", 1000),
        ("12e6", "12e6", 12000000),
        ("1000000k", "1G", 10**9),
        ("-1", "-1", -1),
        ("-500m", "-500m", -1),
        (".5", "500m", 1),
        ("0.3n", "1n", 1),
        ("Gi", "0", 0),
    ],
)
def test_a_quantity_is_read_and_printed_as_go_does(text, canonical, value):
    quantity = Quantity.parse(text)
    assert (str(quantity), quantity.value) == (canonical, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1K",
        "1.2.3",
        "1 Gi",
        "1ei",
        "e",
        "--1",
        "1Gi5",
        "1e100",
        "٣Gi",
        "1\n",
        "٣",
        "1_000",
        " 1",
        "9" * 129,
        "1e" + "9" * 5000,
    ],
)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_bytes_print_with_the_largest_suffix_that_leaves_a_whole_number():
    assert [str(Quantity.of_bytes(n)) for n in (8 * 2**30, 8 * 2**30 + 1024, 8 * 2**30 + 1, 1023, 0)] == [
        "8Gi",
        "8388609Ki",
        "8589934593",
        "1023",
        "0",
    ]


def test_a_sum_is_printed_as_its_first_part_that_is_not_zero():
    zero, binary, decimal = Quantity(0), Quantity.of_bytes(2**20), Quantity.of_count(2**20)
    assert [str(zero.plus(binary)), str(binary.plus(zero)), str(decimal.plus(binary))] == ["1Mi", "1Mi", "2097152"]
    assert [str(zero.minus(binary)), str(binary.minus(zero)), str(zero.minus(decimal))] == ["-1Mi", "1Mi", "-1048576"]


def test_quantities_compare_by_value():
    assert same_amount("1Gi", "1024Mi")
    assert not same_amount("1Gi", "1G")


@given(st.integers(min_value=-(2**62), max_value=2**62), st.sampled_from(["", "m", "k", "Ki", "Mi"]))
def test_the_canonical_form_means_the_same(number, suffix):
    quantity = Quantity.parse(f"{number}{suffix}")
    assert Quantity.parse(str(quantity)).nano == quantity.nano


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
