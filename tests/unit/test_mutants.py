"""The table of known mistakes: `make mutants` tries them, which takes too long for each run."""

from pathlib import Path

from tests.mutants.__main__ import MUTANTS

ROOT = Path(__file__).parents[2]


def test_each_mistake_of_the_table_still_has_its_place_in_the_code() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    for mutant in MUTANTS:
        assert mutant.source(ROOT) != mutant.path(ROOT).read_text()
