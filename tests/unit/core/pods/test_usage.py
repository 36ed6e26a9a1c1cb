"""What containers seem to use."""

import pytest

from agent.core.pods.curve import Curve, Point
from agent.core.pods.usage import Usage, check_usage, container_usage
from tests.unit.core.pods.builders import container, pod

MILLI, MEBI, MINUTE = 10**6, 2**20 * 10**9, 60_000
SIZED = container(
    resources={"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
)


def usage(annotations: dict[str, str] | None = None, rules: dict[str, str] | None = None) -> Usage:
    """What the container of such a pod uses."""
    return container_usage(pod(SIZED, annotations=annotations or {}), SIZED, rules or {})


def cpu(value: str) -> Curve:
    return usage({"fake-kubelet.dev/usage-cpu": value}).cpu


@pytest.mark.parametrize(
    ("value", "curve"),
    [
        ("250m", Curve.constant(250 * MILLI)),
        (" 1 ", Curve.constant(1000 * MILLI)),
        ("60% of request", Curve.constant(120 * MILLI)),
        ("12.5% of limit", Curve.constant(125 * MILLI)),
        ("ramp(0,500m,10m)", Curve.ramp(0, 500 * MILLI, 10 * MINUTE)),
        ("sine(100m,400m,1h)", Curve.sine(100 * MILLI, 400 * MILLI, 60 * MINUTE)),
        ("sine(10% of request, 50% of limit, 90s)", Curve.sine(20 * MILLI, 500 * MILLI, 90_000)),
        (
            "step(100m, 400m@5m, 100m@15m)",
            Curve.steps([Point(0, 100 * MILLI), Point(5 * MINUTE, 400 * MILLI), Point(15 * MINUTE, 100 * MILLI)]),
        ),
    ],
)
def test_a_value_is_an_amount_a_share_or_a_shape(value: str, curve: Curve) -> None:
    assert cpu(value) == curve


def test_noise_is_the_same_for_the_same_container_and_another_for_most_others() -> None:
    noisy = {"fake-kubelet.dev/usage-cpu": "noise(200m,10%)"}
    curves = {container_usage(pod(container(name), annotations=noisy), container(name), {}).cpu for name in "abcdefgh"}
    assert cpu("noise(200m,10%)") == cpu("noise( 200m, 10% )")
    assert len(curves) > 4
    assert all(180 * MILLI <= point.nano <= 220 * MILLI for curve in curves for point in curve.points)


def test_usage_is_cut_off_at_the_limits_of_the_container() -> None:
    found = usage({"fake-kubelet.dev/usage-cpu": "2", "fake-kubelet.dev/usage-memory": "ramp(64Mi,256Mi,10m)"})
    assert found.cpu == Curve.constant(1000 * MILLI)
    assert [found.memory.at(at * MINUTE) // MEBI for at in (0, 10)] == [64, 128]
    unlimited = container()
    assert container_usage(pod(unlimited, annotations={"fake-kubelet.dev/usage-cpu": "2"}), unlimited, {}).cpu.at(
        0
    ) == (2000 * MILLI)


def test_pods_of_a_workload_share_their_curves() -> None:
    first, second = (cpu("sine(100m,400m,1h)") for _ in range(2))
    assert first is second


@pytest.mark.parametrize("cpu", ["0", "much"])
def test_a_container_uses_no_less_than_a_pause_container(cpu: str) -> None:
    pause = Usage(Curve.constant(MILLI // 10), Curve.constant(MEBI // 2))
    assert usage({"fake-kubelet.dev/usage-cpu": cpu}, {"memory": "0"}) == pause


def test_a_rule_is_for_what_no_annotation_says() -> None:
    rules = {"cpu": "60% of request", "memory": "80% of limit"}
    found = usage({"fake-kubelet.dev/usage-cpu": "1m"}, rules)
    assert (found.cpu, found.memory.at(0)) == (Curve.constant(MILLI), round(0.8 * 128 * MEBI))


def test_the_annotation_of_a_container_comes_before_that_of_the_pod_and_kwoks_last() -> None:
    annotations = {"kwok.x-k8s.io/usage-memory": "1Mi"}
    assert usage(annotations).memory == Curve.constant(MEBI)
    annotations["fake-kubelet.dev/usage-memory"] = "2Mi"
    assert usage(annotations).memory == Curve.constant(2 * MEBI)
    annotations["usage-memory.fake-kubelet.dev/main"] = "3Mi"
    assert usage(annotations).memory == Curve.constant(3 * MEBI)


def test_an_annotation_that_says_nothing_leaves_it_to_the_next() -> None:
    annotations = {"usage-cpu.fake-kubelet.dev/main": "much", "fake-kubelet.dev/usage-cpu": "5m"}
    assert usage(annotations).cpu == Curve.constant(5 * MILLI)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("much", '"much" is neither a quantity such as 250m or 64Mi, nor a share, nor a shape'),
        ("-1", '"-1" is out of range'),
        ("60%", '"60%" is no share; write "60% of request" or "80% of limit"'),
        ("saw(1,2,3s)", '"saw" is no shape; use ramp, sine, step or noise'),
        ("ramp(1,2)", "ramp takes two amounts and a duration, as ramp(100m, 400m, 1h)"),
        ("sine(1,2,never)", '"never" is no duration such as 90s, 10m or 1h'),
        ("sine(1,2,1ms)", "the period of sine is at least 1s"),
        ("step(1,2)", '"2" has no time; write step(100m, 400m@5m, 100m@15m)'),
        ("step(1,2@5s,3@4s)", "the times of step have to rise"),
        ("noise(1,2)", "noise takes an amount and a percentage, as noise(200m, 10%)"),
        ("1" * 2000, "it is longer than 1024 characters"),
    ],
)
def test_a_wrong_value_is_named(value: str, reason: str) -> None:
    assert check_usage(value) == reason


def test_a_value_that_says_something_has_no_fault() -> None:
    assert check_usage("sine(10% of request, 50% of limit, 90s)") == ""
