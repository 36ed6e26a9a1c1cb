from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.errors import ConfigError
from agent.core.sharding import Shard, owner

NAMES = [f"hollow-{index:05}" for index in range(1000)]
COUNTS = st.integers(1, 12)


@given(st.sampled_from(NAMES), COUNTS)
def test_every_node_has_one_owner(name, count):
    owners = [ordinal for ordinal in range(count) if Shard(ordinal, count).owns(name)]
    assert owners == [owner(name, count)]


@given(st.sampled_from(NAMES), COUNTS)
def test_a_node_moves_to_the_new_shard_or_stays(name, count):
    assert owner(name, count + 1) in {owner(name, count), count}


@pytest.mark.parametrize("count", [2, 4, 10])
def test_shards_have_about_as_many_nodes_each(count):
    shares = Counter(owner(name, count) for name in NAMES)
    assert len(shares) == count
    assert all(0.7 < share * count / len(NAMES) < 1.3 for share in shares.values())


def test_owners_are_the_same_in_every_version():
    assert [owner(name, 4) for name in NAMES[:8]] == [0, 1, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(("ordinal", "count"), [(4, 4), (-1, 4), (0, 0)])
def test_a_shard_beyond_the_others_is_refused(ordinal, count):
    with pytest.raises(ConfigError, match=f"shard {ordinal} is not one of the {count}"):
        Shard(ordinal, count)
