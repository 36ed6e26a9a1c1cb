from prometheus_client.parser import text_string_to_metric_families

from agent.adapters.metrics.exposition import exposition
from agent.core.metrics import Counter, Family, Gauge, Histogram, Sample


def parsed(*families):
    text = exposition(families).decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_everything_can_be_read_back_by_prometheus():
    counter, gauge, histogram = Counter("c_total", "C.", ("x",)), Gauge("g", "G."), Histogram("h", "H.", ("y",))
    counter.add('a "quoted"\nline \\')
    gauge.set(value=float("inf"))
    histogram.observe("z", value=0.3)
    read = parsed(counter.family(), gauge.family(), histogram.family())
    assert [(name, family.type, family.documentation) for name, family in read.items()] == [
        ("c", "counter", "C."),
        ("g", "gauge", "G."),
        ("h", "histogram", "H."),
    ]
    assert read["c"].samples[0].labels == {"x": 'a "quoted"\nline \\'}
    assert read["g"].samples[0].value == float("inf")
    assert {sample.labels.get("le"): sample.value for sample in read["h"].samples}["0.5"] == 1


def test_a_counter_of_kubelets_that_does_not_end_in_total_keeps_its_name():
    text = exposition([Counter("renew_errors", "E.").family(), Gauge("renew_errors_seen", "G.").family()]).decode()
    assert "# TYPE renew_errors counter\nrenew_errors 0.0\n" in text
    assert "# TYPE renew_errors_seen gauge\n" in text


def test_those_who_count_the_same_are_one_family():
    one, other = Counter("c_total", "C.", ("x",)), Counter("c_total", "C.", ("x",))
    one.add("a")
    other.add("b")
    assert [sample.labels["x"] for sample in parsed(one.family(), other.family())["c"].samples] == ["a", "b"]


def test_what_has_no_number_is_not_there():
    assert exposition([Counter("c_total", "C.", ("x",)).family()]) == b""


def test_a_number_may_be_older_than_now():
    text = exposition([Family("g", "G.", "gauge", [Sample("", {}, 2.0, 1700000000.123)])])
    assert b"\ng 2.0 1700000000123\n" in text
