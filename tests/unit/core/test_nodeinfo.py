from agent.core.config import Config
from agent.core.nodeinfo import declared_features
from tests.fakes import facts


def test_the_features_of_the_settings_are_declared():
    assert declared_features(facts(config=Config(node_name="n1", declared_features=("A", "B")))) == {
        "declaredFeatures": ["A", "B"]
    }


def test_without_features_what_the_node_shows_is_left_alone():
    assert declared_features(facts()) == {}
