import json

import pytest

from agent.adapters.fleet import catalogue
from agent.adapters.fleet.catalogue import Catalogue, shipped_catalogue
from agent.core.errors import ConfigError
from agent.core.quantity import format_amounts

# As the KWOK provider of Karpenter has them, in the form of today and in an older one.
TODAY = {
    "name": "c-4x-arm64-linux",
    "offerings": [{"CapacityType": "spot", "Zone": "test-zone-a", "Price": 0.02, "Available": True}],
    "architecture": "arm64",
    "operatingSystems": ["linux"],
    "resources": {"cpu": "4", "ephemeral-storage": "20Gi", "memory": "8Gi", "pods": "64"},
}
OLDER = {**TODAY, "name": "old", "operatingSystems": {"windows": {}}, "resources": {"cpu": 1}}


def types(*entries):
    return Catalogue(json.dumps(entries), "types.json")


def test_an_entry_says_resources_architecture_and_system():
    entry = types(TODAY, OLDER).get("c-4x-arm64-linux")
    assert (entry.architecture, entry.operating_system) == ("arm64", "linux")
    assert format_amounts(entry.resources) == TODAY["resources"]


def test_systems_may_be_a_map_and_amounts_numbers():
    entry = types(OLDER).get("old")
    assert (entry.operating_system, format_amounts(entry.resources)) == ("windows", {"cpu": "1"})


def test_a_name_that_is_missing_is_refused_with_the_one_that_may_have_been_meant():
    with pytest.raises(ConfigError, match=r'"c-4x-arm64" is not in types.json; did you mean c-4x-arm64-linux\?'):
        types(TODAY).get("c-4x-arm64")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("[{", "types.json: Input data was truncated"),
        ("{}", "types.json: Expected `array`, got `object`"),
        ('[{"name": "a"}]', "types.json: Object missing required field `resources`"),
        ('[{"name": "a", "resources": {"cpu": "x"}}]', 'types.json: a: resources.cpu: "x": quantities must match'),
    ],
)
def test_a_catalogue_that_cannot_be_read_is_refused(content, error):
    with pytest.raises(ConfigError) as refusal:
        Catalogue(content, "types.json")
    assert str(refusal.value).startswith(error)


def test_the_shipped_types_have_all_that_karpenter_needs():
    content = catalogue.files(catalogue.__package__).joinpath("instance_types.json").read_text()
    entries = json.loads(content)
    assert len(entries) == len({entry["name"] for entry in entries}) == 12
    for entry in entries:
        assert set(entry) == set(TODAY)
        assert set(entry["resources"]) >= set(TODAY["resources"])
        assert all(set(offering) == set(TODAY["offerings"][0]) for offering in entry["offerings"])


def test_the_type_of_the_example_is_shipped():
    assert format_amounts(shipped_catalogue().get("p5.48xlarge").resources) == {
        "cpu": "192",
        "memory": "2Ti",
        "ephemeral-storage": "100Gi",
        "pods": "100",
        "nvidia.com/gpu": "8",
    }
