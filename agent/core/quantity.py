"""Resource quantities as Kubernetes writes them (`1500m`, `8Gi`, `1e3`), and integers in the grammar of Go."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Self

_NANO = 10**9
_MAX_INT64 = 2**63 - 1
_LONGEST_QUANTITY = 128  # Go has no such limit; what an API server prints has no more than some 30
_MAX_EXPONENT = 99  # nor this one, and would compute for a long time
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*)([+-]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}
_SIGNED = re.compile("[+-]?[0-9]+")
_MOST_DIGITS = 20  # of 64 bits; Python refuses to read thousands


class QuantityError(ValueError):
    """The text is not a quantity; the message is the one Go's parser gives."""


class Format(Enum):
    """How a quantity is printed, decided by how it was written first."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount in billionths, and the format it is printed in."""

    nano: int
    format: Format = Format.DECIMAL_SI

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a quantity as apimachinery's resource.ParseQuantity does, rounding up to a billionth."""
        match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_QUANTITY else None
        if not match or not text:
            raise QuantityError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        factor, form = _suffix(match[4], match[5])
        digits = match[2] + (match[3] or "")  # none at all is 0 for Go
        amount = Fraction(int(digits or 0), 10 ** len(match[3] or "")) * factor
        nano = -(-amount.numerator * _NANO // amount.denominator)
        if form is Format.BINARY_SI:
            nano = min(nano, _MAX_INT64 * _NANO)
            if 0 < nano < _NANO:
                form = Format.DECIMAL_SI
        return cls(-nano if match[1] == "-" else nano, form)

    @classmethod
    def of_bytes(cls, count: int) -> Self:
        """A number of bytes, printed with Ki, Mi, Gi…"""
        return cls(count * _NANO, Format.BINARY_SI)

    @classmethod
    def of_count(cls, count: int) -> Self:
        """A number of things."""
        return cls(count * _NANO)

    @classmethod
    def of_millis(cls, millis: int) -> Self:
        """A number of thousandths, as CPUs are counted."""
        return cls(millis * 10**6)

    @property
    def value(self) -> int:
        """The whole number, rounded away from zero as Go's Value() does."""
        return _rounded_away(self.nano, _NANO)

    @property
    def millis(self) -> int:
        """The thousandths, rounded away from zero as Go's MilliValue() does."""
        return _rounded_away(self.nano, 10**6)

    def plus(self, other: "Quantity") -> "Quantity":
        """This amount and another; a zero takes over the other's format, as in Go."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def minus(self, other: "Quantity") -> "Quantity":
        """This amount less another; a zero takes over the other's format, as in Go."""
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def at_least_zero(self) -> "Quantity":
        """This amount, or zero where it would be negative."""
        return self if self.nano >= 0 else Quantity(0, self.format)

    def __str__(self) -> str:
        """Print the canonical form: the largest suffix that leaves a whole number."""
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * _NANO and self.nano % _NANO == 0:
            return _canonical(self.nano // _NANO, 0, 1024, 10, _BINARY_SUFFIX)
        if self.format is Format.DECIMAL_EXPONENT:
            return _canonical(self.nano, -9, 1000, 3, {e: f"e{e}" if e else "" for e in range(-9, 64, 3)})
        return _canonical(self.nano, -9, 1000, 3, _DECIMAL_SUFFIX)


def format_amounts(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """Return the amounts of a ResourceList as the API writes them."""
    return {name: str(amount) for name, amount in amounts.items()}


def parse_amounts(texts: Mapping[str, str]) -> dict[str, Quantity]:
    """Return the amounts of a ResourceList. Raises ValueError that names the resource of what is no quantity."""
    amounts = {}
    for name, text in texts.items():
        try:
            amounts[name] = Quantity.parse(text)
        except QuantityError as error:
            raise ValueError(f'{name}: "{text}": {error}') from error
        if amounts[name].nano < 0:
            raise ValueError(f"{name}: {text} is negative")
    return amounts


def same_amount(left: str, right: str) -> bool:
    """Whether two written quantities are equal in value, however they are printed."""
    return left == right or Quantity.parse(left).nano == Quantity.parse(right).nano


def _suffix(letters: str, exponent: str) -> tuple[Fraction, Format]:
    if letters in {"e", "E"} and exponent not in {"", "+", "-"} and abs(int(exponent)) <= _MAX_EXPONENT:
        return Fraction(10) ** int(exponent), Format.DECIMAL_EXPONENT
    if not exponent and letters in _BINARY:
        return Fraction(2 ** _BINARY[letters]), Format.BINARY_SI
    if not exponent and letters in _DECIMAL:
        return Fraction(10) ** _DECIMAL[letters], Format.DECIMAL_SI
    raise QuantityError("unable to parse quantity's suffix")


def _canonical(mantissa: int, exponent: int, base: int, step: int, suffixes: dict[int, str]) -> str:
    while mantissa % base == 0 and exponent + step in suffixes:
        mantissa //= base
        exponent += step
    return f"{mantissa}{suffixes[exponent]}"


def _rounded_away(nano: int, unit: int) -> int:
    return -(-nano // unit) if nano >= 0 else nano // unit


@lru_cache(maxsize=1024)  # most quantities of an object are those of the object before
def parse_quantity(text: str) -> Quantity:
    """Read a quantity as Quantity.parse does, from memory where it was read before."""
    return Quantity.parse(text)


def parse_int(text: str, *, bits: int) -> int:
    """Read a decimal number; raise ValueError with Go's message where it is none."""
    if not _SIGNED.fullmatch(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if _is_huge(text) or not -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_uint(text: str, *, bits: int) -> int:
    """Read a decimal number without a sign; raise ValueError with Go's message where it is none."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if _is_huge(text) or int(text) >= 2**bits:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _is_huge(text: str) -> bool:
    return len(text.lstrip("+-0")) > _MOST_DIGITS
