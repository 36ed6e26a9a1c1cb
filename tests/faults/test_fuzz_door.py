"""Answers of every kind with every field mutated: what is let in is used, and what is not is an ApiError."""

import json
import logging
import os
import random
import time
from collections import Counter

import pytest

from tests.faults.door import Door
from tests.faults.mutations import Mutations

OBJECTS = int(os.environ.get("FUZZ_OBJECTS", "3000"))
SEED = int(os.environ.get("FUZZ_SEED", "15"))

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(autouse=True)
def unheard():
    """pytest keeps every record of the log, and there will be many."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_every_example_is_let_in_as_it_is():
    for kind, (example, read) in Door().readers().items():
        assert read(json.dumps(example).encode()) is (kind != "Error, watched"), kind


def test_no_object_however_mutated_makes_anything_fail_behind_the_door():
    chance = random.Random(SEED)  # noqa: S311
    readers = [(kind, read, Mutations(example, chance)) for kind, (example, read) in Door().readers().items()]
    let_in: Counter[str] = Counter()
    slowest = 0.0, "", b""
    began = time.process_time()
    for number in range(OBJECTS):
        kind, read, mutations = readers[number % len(readers)]
        content = mutations.next()
        at = time.process_time()
        try:
            let_in[kind] += read(content)
        except Exception as error:
            error.add_note(f"FUZZ_SEED={SEED}, number {number}, {kind}: {content[:3000]!r}")
            raise
        slowest = max(slowest, (time.process_time() - at, kind, content[:200]))
    took = time.process_time() - began
    print(f"\n{OBJECTS} objects in {took:.1f} s of CPU, seed {SEED}, let in: {dict(let_in)}")
    print(f"the slowest took {slowest[0] * 1000:.1f} ms: {slowest[1]} {slowest[2]!r}")
    each = OBJECTS // len(readers)
    for kind, _, _ in readers:
        assert (0.01 * each < let_in[kind] < 0.99 * each) or kind == "Error, watched", (kind, let_in[kind])
