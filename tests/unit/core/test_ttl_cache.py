from agent.core.ttl_cache import TTLCache


def test_a_value_expires():
    cache = TTLCache(10)
    cache.put("k", "v", expires_at=5.0)
    assert cache.get("k", 4.9) == "v"
    assert cache.get("k", 5.0) is None
    assert len(cache) == 0


def test_a_full_cache_evicts_the_least_recently_used_value():
    cache = TTLCache(2)
    cache.put("a", 1, expires_at=9.0)
    cache.put("b", 2, expires_at=9.0)
    assert cache.get("a", 0.0) == 1
    cache.put("c", 3, expires_at=9.0)
    assert [cache.get(key, 0.0) for key in "abc"] == [1, None, 3]
