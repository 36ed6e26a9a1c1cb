import json

import pytest

from agent.adapters.certificates.bootstrap_files import client_pair
from agent.adapters.kubeconfig import read_kubeconfig
from agent.adapters.lazy_kubernetes import ConfigException
from agent.ports import StartError

SECRET = "0123456789abcdef"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"token: abcdef.{SECRET}: oops", "line 2, column 31: mapping values are not allowed in this context"),
        (f"token: '{SECRET}", "line 3, column 1: found unexpected end of stream"),
        (f"token: *{SECRET}", "line 2, column 8: found undefined alias"),
        (f"token: !{SECRET} x", "line 2, column 8: could not determine a constructor for the tag"),
        (f"token: !x{SECRET}!y z", "line 2, column 8: found undefined tag"),
        (f"token: !!int x{SECRET}", "no YAML: ValueError"),
        (f"token: !!bool x{SECRET}", "no YAML: ValueError"),
        (f"token: {SECRET}\0", "no YAML: ReaderError"),
    ],
    ids=["colon", "open quote", "alias", "tag", "tag handle", "number", "boolean", "control character"],
)
def test_broken_yaml_is_told_by_its_place_and_not_by_what_stands_there(tmp_path, line, told):
    path = tmp_path / "kubeconfig"
    path.write_text(f"kind: Config\n{line}\n")
    with pytest.raises(ConfigException) as raised:
        read_kubeconfig(path)
    assert str(raised.value) == told
    with pytest.raises(StartError) as raised_again:
        client_pair(path)
    assert str(raised_again.value) == f"unable to load kubeconfig {path}: {told}"


def test_secrets_are_not_shown_with_what_was_read(tmp_path):
    path = tmp_path / "kubeconfig"
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"username": "someone", "password": SECRET}}],
    }
    path.write_text(json.dumps(document))
    assert SECRET not in repr(read_kubeconfig(path))
