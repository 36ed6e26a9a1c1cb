from agent.core.recall import Recall


def test_a_value_is_good_until_its_time():
    recall = Recall(10)
    recall.keep("k", "v", until=5.0)
    assert recall.get("k", 4.9) == "v"
    assert recall.get("k", 5.0) is None
    assert len(recall) == 0


def test_the_value_not_asked_for_longest_gives_way():
    recall = Recall(2)
    recall.keep("a", 1, until=9.0)
    recall.keep("b", 2, until=9.0)
    assert recall.get("a", 0.0) == 1
    recall.keep("c", 3, until=9.0)
    assert [recall.get(key, 0.0) for key in "abc"] == [1, None, 3]
