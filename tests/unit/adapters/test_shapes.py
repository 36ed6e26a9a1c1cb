"""What is let in of an object's fields: values that nobody behind the door can stumble over."""

import copy

import msgspec
import pytest

from agent.adapters import shapes
from agent.adapters.shapes import AccessReviewStatus, LeaseShape, NodeShape, PodShape, TokenReviewStatus, misfit
from agent.core import model
from tests.faults import objects


def changed(original, path, value):
    """The object with one field replaced."""
    found = copy.deepcopy(original)
    *way, last = path.split(".")
    parent = found
    for key in way:
        parent = parent[int(key) if isinstance(parent, list) else key]
    parent[last] = value
    return found


@pytest.mark.parametrize(
    "amount", ["1\n", "٣", "1_000", " 1", "1e100", "1e99999999999", "9" * 5000, "", 1, None, ["1"]]
)
def test_an_amount_is_what_the_parser_of_quantities_reads(amount):
    assert misfit(changed(objects.NODE, "status.capacity.cpu", amount), NodeShape) is not None
    assert misfit(changed(objects.POD, "spec.containers.0.resources.requests.cpu", amount), PodShape) is not None


@pytest.mark.parametrize("amount", ["1", "1e3", "-5m", "0.5Gi", "9" * 40])
def test_an_amount_as_an_api_server_prints_it_is_let_in(amount):
    assert misfit(changed(objects.NODE, "status.capacity.cpu", amount), NodeShape) is None


def test_a_node_whose_condition_has_no_status_is_let_in_so_that_it_can_be_mended():
    """A patch of heartbeat times leaves such conditions on a Node that somebody has just made anew."""
    ready = {"type": "Ready", "status": "", "lastTransitionTime": None}
    node = changed(objects.NODE, "status.conditions", [ready])
    assert misfit(node, NodeShape) is None


@pytest.mark.parametrize("path", ["status.startTime", "metadata.deletionTimestamp"])
@pytest.mark.parametrize(
    ("time", "is_let_in"),
    [
        ("9999-12-31T23:59:59Z", True),
        ("9999-12-31T23:59:59-23:59", True),
        ("0001-01-01T00:00:00+23:59", True),
        ("2026-01-01T00:00:00z", False),
        ("2026-01-01T00:00:00", False),
        ("2026-01-01 00:00:00Z", False),
        ("2026-01-01T00:00:00Z\n", False),
        (1767225600, False),
        ([], False),
    ],
)
def test_a_time_is_what_the_parser_of_times_reads(path, time, is_let_in):
    assert (misfit(changed(objects.POD, path, time), PodShape) is None) is is_let_in


@pytest.mark.parametrize("field", ["name", "namespace", "uid"])
@pytest.mark.parametrize(
    "name", ["../../x", "a/b", "a%2fb", "", "..", "a\n", "a\0", "\x1b", "a b", "ä", "a?b", "a" * 300, 5]
)
def test_a_name_is_no_way_out_of_a_path(field, name):
    assert misfit(changed(objects.POD, f"metadata.{field}", name), PodShape) is not None


def test_a_version_is_whatever_the_server_likes_within_bounds():
    for version, is_let_in in (("9" * 5000, True), ("abc", True), ("", False), ("1\n", False), ("9" * 9000, False)):
        assert (misfit(changed(objects.NODE, "metadata.resourceVersion", version), NodeShape) is None) is is_let_in


@pytest.mark.parametrize("boot", [["b"], {}, 5, None])
def test_a_boot_id_is_a_text(boot):
    assert misfit(changed(objects.NODE, "status.nodeInfo.bootID", boot), NodeShape) is not None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.priority", 2**31),
        ("spec.containers.0.ports.0.hostPort", 2**31),
        ("spec.terminationGracePeriodSeconds", 2**63),
        ("spec.activeDeadlineSeconds", 10**30),
        ("metadata.generation", 2**63),
        ("metadata.deletionGracePeriodSeconds", -(2**63) - 1),
        ("status.containerStatuses.0.restartCount", 10**30),
    ],
)
def test_a_number_has_the_room_that_the_api_gives_it(path, value):
    assert misfit(changed(objects.POD, path, value), PodShape) is not None


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", 5, [], None, {}])
def test_a_lease_may_say_what_it_likes_about_its_times(time):
    assert misfit(changed(objects.LEASE, "spec.renewTime", time), LeaseShape) is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("authenticated", "false"),
        ("user", []),
        ("user.username", None),
        ("user.groups", "abc"),
        ("user.groups", [5]),
        ("user.uid", []),
        ("user.extra", {"k": "v"}),
        ("user.extra", {"k": [5]}),
        ("user.extra", [["k", "v"]]),
    ],
)
def test_a_token_review_is_about_a_user(path, value):
    assert misfit(objects.TOKEN_REVIEW["status"], TokenReviewStatus) is None
    assert misfit(changed(objects.TOKEN_REVIEW["status"], path, value), TokenReviewStatus) is not None


@pytest.mark.parametrize("word", ["true", "false", 1, 0, None, [], {}])
def test_nobody_may_do_anything_by_a_word_that_is_no_yes(word):
    assert misfit(changed(objects.ACCESS_REVIEW["status"], "allowed", word), AccessReviewStatus) is not None


SAME_OBJECTS = [
    (shapes.NodeSpecShape, model.NodeSpec),
    (shapes.NodeStatusShape, model.NodeStatus),
    (shapes.ConditionShape, model.Condition),
    (shapes.TaintShape, model.NodeTaint),
    (shapes.ContainerShape, model.Container),
    (shapes.ResourcesShape, model.ResourceRequirements),
    (shapes.PodMetadata, model.ObjectMeta),
    (shapes.PodSpecShape, model.PodSpec),
    (shapes.PodStatusShape, model.PodStatus),
    (shapes.ContainerStatusShape, model.ContainerStatus),
    (shapes.ContainerStateShape, model.ContainerState),
    (shapes.TerminatedState, model.ContainerTerminated),
]


@pytest.mark.parametrize(("shape", "described"), SAME_OBJECTS, ids=lambda kind: kind.__name__)
def test_what_is_checked_is_described_to_mypy_under_the_same_name(shape, described):
    fields = {field.encode_name for field in msgspec.structs.fields(shape)}
    assert fields <= described.__annotations__.keys()
