import pytest

from agent.core.usage import CpuRate, CpuSample, MemoryUsage

CORE = 1_000_000_000  # a core, in nanoseconds per second


def rates(*moments: tuple[float, float]) -> list[int | None]:
    """What a speedometer says at each moment, given as seconds and cores·seconds until then."""
    meter = CpuRate()
    return [meter.nanocores(CpuSample(at, int(used * CORE))) for at, used in moments]


def test_the_first_to_ask_learns_no_rate():
    assert rates((100, 5)) == [None]


def test_a_rate_is_over_the_time_since_somebody_asked():
    assert rates((0, 0), (0.25, 0.5), (15, 15))[1:] == [2 * CORE, CORE]


def test_a_rate_forgets_what_was_two_windows_ago():
    busy_then_idle = [(0, 0), (10, 20), (20, 20), (30, 20)]
    assert rates(*busy_then_idle) == [None, 2 * CORE, 0, 0]


def test_somebody_who_asks_all_the_time_does_not_narrow_the_window():
    often = [(second, second) for second in range(30)]
    often.append((30, 40))  # ten cores for one second
    assert rates(*often)[-1] < 2.1 * CORE


def test_a_rate_is_never_over_less_than_a_window_where_there_is_one():
    assert rates((0, 0), (10, 12), (12, 12))[-1] == CORE


def test_a_rate_over_more_than_two_minutes_is_none():
    assert rates((0, 0), (121, 121)) == [None, None]


def test_time_that_does_not_pass_and_counters_that_go_back_give_no_nonsense():
    assert rates((1, 1), (1, 1)) == [None, None]
    assert rates((1, 5), (2, 1)) == [None, 0]


@pytest.mark.parametrize(
    ("usage", "inactive", "working_set"),
    [(100, 30, 70), (100, 0, 100), (30, 100, 0)],
    ids=["page cache that nobody looked at does not count", "no page cache", "never below nothing"],
)
def test_the_working_set(usage, inactive, working_set):
    memory = memory_of(usage_bytes=usage, inactive_file_bytes=inactive, total_bytes=1000)
    assert memory.working_set_bytes == working_set
    assert memory.available_bytes == 1000 - working_set


def memory_of(**figures):
    names = ("rss", "cache", "mapped_file", "active_file", "swap_total", "swap")
    return MemoryUsage(**{f"{name}_bytes": 0 for name in names} | {"page_faults": 0, "major_page_faults": 0} | figures)
