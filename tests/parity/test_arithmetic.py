"""Quantities, percentages and durations against Kubernetes' own Go code, on tens of thousands of vectors."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agent.core.errors import ConfigError
from agent.core.pressure import parse_thresholds
from agent.core.quantity import Quantity, QuantityError
from agent.core.times import format_nanos, parse_nanos
from tests.cluster import build
from tests.cluster.command import run

Ask = Callable[[Iterable[str]], list[str]]

_SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+6")
_WRONG = ("K", "mi", "ki", "KI", "e", "Gib", "i", " ", "%", "e3.5", "--", "..", "1_0", "0x1", "Zi")


@pytest.fixture(scope="module")
def ask(binaries: Path) -> Ask:
    """Puts questions to the Go program, one answer each."""
    build.require(binaries, *build.OWN)

    def answers(questions: Iterable[str]) -> list[str]:
        text = "".join(f"{question}\n" for question in questions)
        return run([str(binaries / "oracle")], stdin=text).splitlines()

    return answers


@pytest.fixture
def chance() -> random.Random:
    """The same numbers in every run."""
    return random.Random(20260102)  # noqa: S311


def numbers(chance: random.Random, count: int) -> list[str]:
    """Written numbers of all lengths, whole and broken, signed and not, with zeros in odd places."""
    made = []
    for _ in range(count):
        whole = str(chance.randrange(10 ** chance.randint(1, 18)))
        fraction = f".{chance.randrange(10 ** chance.randint(1, 12))}" if chance.random() < 0.4 else ""
        zeros = "0" * chance.randrange(3) if chance.random() < 0.2 else ""
        made.append(chance.choice(("", "", "", "-", "+")) + zeros + whole + fraction)
    return [
        *made,
        "0",
        "00",
        ".5",
        "5.",
        "-0",
        "0.0",
        "1024",
        "1023",
        "999",
        "1000",
        str(2**63 - 1),
        str(2**63),
        str(10**30),
    ]


def parsed(text: str) -> str:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return "error"
    return f"{quantity} {quantity.value} {quantity.millis}"


def differing(questions: list[str], theirs: list[str], ours: list[str]) -> list[str]:
    rows = zip(questions, theirs, ours, strict=True)
    return [f"{question}: Go {left}, here {right}" for question, left, right in rows if left != right][:20]


def in_range(text: str) -> bool:
    """Go's Value() and MilliValue() mean nothing where they do not fit into 64 bits."""
    try:
        return abs(Quantity.parse(text).millis) < 2**63
    except QuantityError:
        return True


def test_quantities_are_read_and_printed_alike(ask: Ask, chance: random.Random) -> None:
    texts = [number + suffix for number in numbers(chance, 1200) for suffix in _SUFFIXES]
    texts = [text for text in texts if in_range(text)]
    assert len(texts) > 10_000
    theirs, ours = ask(f"parse {text}" for text in texts), [parsed(text) for text in texts]
    for index, text in enumerate(texts):
        if text.startswith("-"):  # Go's Value() of a negative big number overflows (apimachinery scaledValue)
            theirs[index], ours[index] = theirs[index].split()[0], ours[index].split()[0]
    assert differing(texts, theirs, ours) == []


def test_what_is_no_quantity_for_go_is_none_here(ask: Ask, chance: random.Random) -> None:
    texts = [number + wrong for number in numbers(chance, 100) for wrong in _WRONG if " " not in wrong]
    texts += [wrong + number for number in numbers(chance, 20) for wrong in ("--", "+-", "Ki", "..")]
    texts += ["Gi", "e3", "+", "-", ".", "e", "1e", "1ei", "1Gi5", "1.2.3"]
    assert differing(texts, ask(f"parse {text}" for text in texts), [parsed(text) for text in texts]) == []


def test_subtraction_is_the_same(ask: Ask, chance: random.Random) -> None:
    plain = [
        text
        for text in (n + s for n in numbers(chance, 300) for s in ("", "m", "Ki", "Mi", "Gi", "M"))
        if in_range(text)
    ]
    pairs = [(chance.choice(plain), chance.choice(plain)) for _ in range(3000)]
    ours = [str(Quantity.parse(left).minus(Quantity.parse(right))) for left, right in pairs]
    questions = [f"minus {left} {right}" for left, right in pairs]
    assert differing(questions, ask(questions), ours) == []


def test_percentages_are_float32_alike(ask: Ask, chance: random.Random) -> None:
    percents = [
        f"{chance.choice((chance.randint(1, 99), round(chance.uniform(0.01, 99.9), chance.randint(1, 6))))}%"
        for _ in range(4000)
    ]
    questions = [f"share {chance.randrange(2 ** chance.randint(20, 50))} {percent}" for percent in percents]
    ours = []
    for question in questions:
        _, capacity, percent = question.split()
        (threshold,) = parse_thresholds({"memory.available": percent})
        ours.append(str(threshold.value.of(int(capacity))))
    assert differing(questions, ask(questions), ours) == []


@pytest.mark.parametrize("text", ["0%", "100%", "-1%", "101%", "x%", "", "0", "-5", "5Gii"])
def test_thresholds_that_go_refuses_or_drops_are_refused_or_dropped(ask: Ask, text: str) -> None:
    try:
        ours = len(parse_thresholds({"memory.available": text}))
    except ConfigError:
        ours = 0
    assert (ask([f"share 1000 {text}"]) == ["error"]) == (ours == 0)


def test_durations_are_read_and_printed_alike(ask: Ask, chance: random.Random) -> None:
    units = ("ns", "us", "µs", "ms", "s", "m", "h", "d", "")
    texts = []
    for _ in range(3000):
        terms = [
            f"{chance.choice((chance.randrange(100), round(chance.uniform(0, 100), 3)))}{chance.choice(units)}"
            for _ in range(chance.randint(1, 3))
        ]
        texts.append(chance.choice(("", "", "-")) + "".join(terms))
    ours = []
    for text in texts:
        try:
            nanos = parse_nanos(text)
            ours.append(f"{nanos} {format_nanos(nanos)}")
        except ValueError:
            ours.append("error")
    assert differing(texts, ask(f"duration {text}" for text in texts), ours) == []
