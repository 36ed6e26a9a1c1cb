import pytest

from agent.core.errors import ConfigError
from agent.core.port_range import PortRange


def test_both_ends_belong_to_a_range():
    ports = PortRange.parse("--port-range", "20000-20999")
    assert (ports.first, ports.last, ports.size, str(ports)) == (20000, 20999, 1000, "20000-20999")


@pytest.mark.parametrize("text", ["", "20000", "a-b", "20000-", "20000-19999", "0-5", "65000-65536", "1-2-3", " 1-2"])
def test_what_is_no_range_is_an_error_that_names_the_flag(text):
    with pytest.raises(ConfigError, match="--port-range must"):
        PortRange.parse("--port-range", text)
