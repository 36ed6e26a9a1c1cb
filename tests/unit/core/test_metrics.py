import pytest

from agent.core.metrics import Counter, Gauge, Histogram, Sample


def values(metrics):
    return {(sample.suffix, *sample.labels.values()): sample.value for sample in metrics.family().samples}


def test_a_counter_counts_by_its_labels():
    counter = Counter("a_total", "help", ("code",))
    counter.add("200")
    counter.add("200", amount=2)
    counter.add("404")
    assert values(counter) == {("", "200"): 3, ("", "404"): 1}
    assert counter.value("200") == 3
    assert counter.value("500") == 0


def test_without_labels_there_is_a_number_from_the_start_with_labels_there_is_none():
    assert Counter("a_total", "help").family().samples == [Sample("", {}, 0.0)]
    assert Counter("a_total", "help", ("code",)).family().samples == []


def test_a_gauge_is_what_was_written_last():
    gauge = Gauge("a", "help", ("loop",))
    gauge.set("lease", value=1)
    gauge.set("lease", value=-2.5)
    assert values(gauge) == {("", "lease"): -2.5}


def test_the_buckets_of_a_histogram_hold_those_below_them_too():
    histogram = Histogram("a", "help", (), (0.1, 1.0))
    for value in (0.1, 0.5, 7.0):
        histogram.observe(value=value)
    assert values(histogram) == {
        ("_bucket", "0.1"): 1,  # a bound belongs to its bucket
        ("_bucket", "1"): 2,
        ("_bucket", "+Inf"): 3,
        ("_sum",): 7.6,
        ("_count",): 3,
    }


def test_labels_that_do_not_fit_are_a_mistake():
    with pytest.raises(ValueError, match="code"):
        Counter("a_total", "help", ("code",)).add()
