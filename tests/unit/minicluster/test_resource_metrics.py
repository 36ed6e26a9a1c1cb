"""What nodes and pods use, from two looks at /metrics/resource."""

from __future__ import annotations

from agent.minicluster.resource_metrics import MeasuredUsage, Subject, read_sample, window_between

MAIN = Subject("default", "web", "main")


def exposition(node_cpu: float, container_cpu: float, millis: int) -> str:
    labels = 'container="main",namespace="default",pod="web"'
    return f"""# HELP node_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the node in core-seconds
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total {node_cpu} {millis}
node_memory_working_set_bytes 2.097152e+06 {millis}
container_cpu_usage_seconds_total{{{labels}}} {container_cpu} {millis}
container_memory_working_set_bytes{{{labels}}} 1024 {millis}
pod_cpu_usage_seconds_total{{namespace="default",pod="web"}} 77 {millis}
container_start_time_seconds{{{labels}}} 1.7e9
resource_scrape_error 0
"""


def test_two_samples_make_a_rate() -> None:
    before, after = read_sample(exposition(100, 1, 10_000)), read_sample(exposition(103, 1.5, 12_000))
    window = window_between(before, after)
    assert window.seconds == 2
    assert window.usage == {Subject(): MeasuredUsage(1_500_000_000, 2 * 2**20), MAIN: MeasuredUsage(250_000_000, 1024)}


def test_a_container_that_began_meanwhile_waits_for_the_next_window() -> None:
    node_only = read_sample("node_cpu_usage_seconds_total 100 10000\nnode_memory_working_set_bytes 1 10000\n")
    assert window_between(node_only, read_sample(exposition(103, 1.5, 12_000))).usage.keys() == {Subject()}


def test_a_counter_that_began_anew_is_no_negative_use() -> None:
    before, after = read_sample(exposition(100, 1, 10_000)), read_sample(exposition(1, 1.5, 12_000))
    assert window_between(before, after).usage[Subject()].cpu_nanocores == 0
