import base64
import json
import tempfile

import pytest

from agent.adapters.credentials import load_credentials
from agent.ports import StartError

pytestmark = pytest.mark.anyio


def written(tmp_path, **changes):
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "s3cret"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config | changes))
    return str(path)


def embedded(text):
    return base64.b64encode(text.encode()).decode()


async def test_a_good_kubeconfig_gives_server_and_tls(tmp_path):
    credentials = await load_credentials(written(tmp_path))
    assert credentials.server == "https://127.0.0.1:6443"
    assert credentials.tls


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"current-context": "none"}, "none"),
        ({"contexts": []}, "contexts"),
        ({"clusters": []}, "clusters"),
        ({"contexts": [{"name": "c", "context": {"cluster": "gone", "user": "u"}}]}, "gone"),
        ({"clusters": None}, ""),
        ({"clusters": [{"name": "c", "cluster": {"insecure-skip-tls-verify": True}}]}, "its cluster has no server"),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "/no/ca"}}]},
            "/no/ca",
        ),
    ],
)
async def test_a_kubeconfig_that_leads_nowhere_is_named(tmp_path, changes, message):
    path = written(tmp_path, **changes)
    with pytest.raises(StartError, match=f"invalid --kubeconfig {path}: .*{message}"):
        await load_credentials(path)


@pytest.mark.parametrize("content", ["", "- a\n- b\n", "a: [\n", "just words"])
async def test_a_file_that_is_no_kubeconfig_is_named(tmp_path, content):
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(StartError, match=f"invalid --kubeconfig {path}: ."):
        await load_credentials(str(path))


async def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StartError, match=r"cannot read --kubeconfig .*/nowhere: No such file or directory"):
        await load_credentials(str(tmp_path / "nowhere"))


async def test_a_directory_is_named(tmp_path):
    with pytest.raises(StartError, match=r"cannot read --kubeconfig .*: Is a directory"):
        await load_credentials(str(tmp_path))


async def test_a_key_that_does_not_load_is_named_and_not_shown(tmp_path):
    user = {"client-certificate-data": embedded("no certificate"), "client-key-data": embedded("s3cret key")}
    path = written(tmp_path, users=[{"name": "u", "user": user}])
    with pytest.raises(StartError, match=f"--kubeconfig {path}: certificate, key") as raised:
        await load_credentials(path)
    assert "s3cret" not in str(raised.value)


async def test_embedded_keys_leave_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    user = {"client-certificate-data": embedded("no certificate"), "client-key-data": embedded("s3cret key")}
    for _ in range(2):
        with pytest.raises(StartError, match="does not load"):
            await load_credentials(written(tmp_path, users=[{"name": "u", "user": user}]))
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_outside_a_pod_a_kubeconfig_is_needed(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(StartError, match="no --kubeconfig given"):
        await load_credentials("")
