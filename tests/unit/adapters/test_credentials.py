import base64
import json
import os
import ssl
import tempfile
from pathlib import Path

import pytest

from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.credentials import load_credentials
from agent.adapters.exec_plugin import run_plugin
from agent.adapters.lazy_kubernetes import ConfigException
from agent.ports import StartError
from tests.cluster.pairs import authority
from tests.unit.core.certificates import encrypted, made

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
    ("cluster", "url"),
    [
        ({"server": "127.0.0.1:6443"}, "http://127.0.0.1:6443"),
        ({"server": "localhost:6443", "insecure-skip-tls-verify": True}, "https://localhost:6443"),
    ],
    ids=["without a word about TLS", "with one"],
)
async def test_a_server_may_be_a_host_and_a_port(tmp_path, cluster, url):
    assert (await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))).server == url


@pytest.mark.parametrize("server", ["https://", "ftp://x", "https://x:no", "https://[::1"])
async def test_a_server_that_is_no_url_is_named(tmp_path, server):
    path = written(tmp_path, clusters=[{"name": "c", "cluster": {"server": server}}])
    with pytest.raises(StartError, match=f"invalid --kubeconfig {path}: ."):
        await load_credentials(path)


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


async def test_a_line_that_is_no_yaml_is_named_and_not_shown(tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text("users:\n- name: u\n  user:\n    token: abcdef.s3cret: oops\n")
    message = f"invalid --kubeconfig {path}: line 4, column 25: mapping values are not allowed in this context"
    with pytest.raises(StartError) as raised:
        await load_credentials(str(path))
    assert str(raised.value) == message


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


async def test_an_encrypted_key_is_no_reason_to_ask_on_the_terminal(tmp_path):
    pair = await KeyWorker().self_signed("n1")
    data = {"client-certificate-data": pair.certificate_pem, "client-key-data": encrypted(pair.key_pem)}
    path = user(tmp_path, **{key: embedded(text) for key, text in data.items()})
    with pytest.raises(StartError, match=f"invalid --kubeconfig {path}: the key is encrypted"):
        await load_credentials(path)


async def test_embedded_keys_are_never_on_a_disk(tmp_path, monkeypatch):
    pair = await KeyWorker().self_signed("n1")
    data = {"client-certificate-data": pair.certificate_pem, "client-key-data": pair.key_pem}
    cluster = {"server": "https://127.0.0.1:6443", "certificate-authority-data": embedded(made())}
    path = written(
        tmp_path,
        clusters=[{"name": "c", "cluster": cluster}],
        users=[{"name": "u", "user": {key: embedded(text) for key, text in data.items()}}],
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))  # where no file can be
    before = memory_files()
    credentials = await load_credentials(path)
    assert credentials.tls.cert_store_stats()["x509"] == 1
    assert memory_files() == before


def memory_files():
    targets = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    return [target for target in targets if "fake-kubelet" in target]


BOTH = "specifying a root certificates file with the insecure flag is not allowed"


@pytest.mark.parametrize("place", ["certificate-authority", "certificate-authority-data"])
async def test_an_authority_and_no_verification_are_refused_in_client_gos_words(tmp_path, place):
    (tmp_path / "ca.crt").write_text(made())
    authority = {"certificate-authority": "ca.crt", "certificate-authority-data": embedded(made())}[place]
    for server in ("https://127.0.0.1:6443", "http://127.0.0.1:6443", "127.0.0.1:6443"):
        cluster = {"server": server, place: authority, "insecure-skip-tls-verify": True}
        path = written(tmp_path, clusters=[{"name": "c", "cluster": cluster}])
        with pytest.raises(StartError, match=f"^invalid --kubeconfig {path}: {BOTH}$"):
            await load_credentials(path)


@pytest.mark.parametrize("value", ["false", "true", 1, [], {}, [False]], ids=repr)
async def test_whether_to_verify_is_a_boolean(tmp_path, value):
    cluster = {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": value}
    with pytest.raises(StartError, match="insecure-skip-tls-verify must be true or false"):
        await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))


@pytest.mark.parametrize("place", ["certificate-authority-data", "certificate-authority"])
async def test_the_authority_is_part_of_the_credentials(tmp_path, place):
    pem = authority().pem
    (tmp_path / "ca.crt").write_text(pem)
    cluster = {"server": "https://127.0.0.1:6443", place: embedded(pem) if place.endswith("data") else "ca.crt"}
    credentials = await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))
    assert credentials.authority == pem.encode()
    assert "BEGIN" not in repr(credentials)


@pytest.mark.parametrize("how", [{}, {"insecure-skip-tls-verify": True}])
async def test_without_an_authority_the_systems_are_not_part_of_the_credentials(tmp_path, how):
    cluster = {"server": "https://127.0.0.1:6443", **how}
    credentials = await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))
    assert credentials.authority == b""


async def test_no_verification_is_warned_of_once(tmp_path, caplog):
    cluster = {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}
    path = written(tmp_path, clusters=[{"name": "c", "cluster": cluster}])
    for _ in range(3):
        credentials = await load_credentials(path)
    assert credentials.tls.verify_mode == ssl.CERT_NONE
    assert [record.levelname for record in caplog.records if "insecure-skip-tls-verify" in record.msg] == ["WARNING"]


@pytest.mark.parametrize("verified", [True, False, None])
async def test_who_answers_is_verified_unless_the_flag_says_no(tmp_path, verified):
    flag = {} if verified is None else {"insecure-skip-tls-verify": not verified}
    cluster = {"server": "https://127.0.0.1:6443", **flag}
    credentials = await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))
    assert (credentials.tls.verify_mode == ssl.CERT_REQUIRED) is (verified is not False)
    assert credentials.tls.check_hostname is (verified is not False)


async def test_the_keys_of_connections_are_written_to_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    credentials = await load_credentials(written(tmp_path))
    assert credentials.tls.keylog_filename is None
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("data", ["!", "AAA", "\u00e9", 7, ["x"]], ids=repr)
@pytest.mark.parametrize("server", ["https", "http"])
async def test_data_that_is_no_base64_is_named(tmp_path, data, server):
    cluster = {"server": f"{server}://127.0.0.1:6443", "certificate-authority-data": data}
    with pytest.raises(StartError, match="certificate-authority-data is no base64"):
        await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))


@pytest.mark.parametrize("content", ["", "\n"], ids=repr)
async def test_an_authority_without_a_certificate_does_not_mean_the_systems(tmp_path, content):
    (tmp_path / "ca.crt").write_text(content)
    cluster = {"server": "https://127.0.0.1:6443", "certificate-authority": "ca.crt"}
    with pytest.raises(StartError, match=r"ca\.crt is empty|certificate-authority does not load"):
        await load_credentials(written(tmp_path, clusters=[{"name": "c", "cluster": cluster}]))


async def test_nested_beyond_sense_is_named(tmp_path):
    (tmp_path / "kubeconfig").write_text("[" * 100_000)
    with pytest.raises(StartError, match="exceeded max depth"):
        await load_credentials(str(tmp_path / "kubeconfig"))


async def test_outside_a_pod_a_kubeconfig_is_needed(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(StartError, match="no --kubeconfig given"):
        await load_credentials("")


def user(tmp_path, **user):
    return written(tmp_path, users=[{"name": "u", "user": user}])


def bearer(credentials):
    return credentials.authorization or None


async def test_a_token_file_wins_over_a_token_and_is_stripped(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    credentials = await load_credentials(
        user(tmp_path, token="s3cret", tokenFile="token")
    )  # relative to the kubeconfig
    assert bearer(credentials) == "Bearer from-file"
    assert tmp_path / "token" in credentials.files


async def test_an_empty_token_file_is_named(tmp_path):
    (tmp_path / "token").write_text("\n")
    with pytest.raises(StartError, match=r"token file .*/token is empty"):
        await load_credentials(user(tmp_path, tokenFile="token"))


async def test_a_context_without_a_user_is_anonymous(tmp_path):
    credentials = await load_credentials(written(tmp_path, contexts=[{"name": "c", "context": {"cluster": "c"}}]))
    assert bearer(credentials) is None


async def test_a_user_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StartError, match='user "u" is not among its users'):
        await load_credentials(written(tmp_path, users=[]))


async def test_impersonation_becomes_headers(tmp_path):
    groups = {"as-groups": ["system:nodes", "more"], "as-user-extra": {"why": ["test"]}}
    credentials = await load_credentials(user(tmp_path, token="t", **{"as": "system:node:n1"}, **groups))
    assert credentials.headers == (
        ("Impersonate-User", "system:node:n1"),
        ("Impersonate-Group", "system:nodes"),
        ("Impersonate-Group", "more"),
        ("Impersonate-Extra-why", "test"),
    )


def plugin(tmp_path, script, **more):
    path = tmp_path / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return user(tmp_path, exec={"apiVersion": version, "command": "./plugin", "interactiveMode": "Never", **more})


def answer(**status):
    return json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})


async def test_an_exec_plugin_is_asked_and_its_expiry_kept(tmp_path):
    status = answer(token="from-plugin", expirationTimestamp="2030-01-02T03:04:05Z")
    credentials = await load_credentials(plugin(tmp_path, f"echo '{status}'"))
    assert bearer(credentials) == "Bearer from-plugin"
    assert credentials.expires_at.year == 2030


async def test_an_exec_plugin_may_complain_at_length(tmp_path):
    noisy = f"head -c 300000 /dev/zero >&2; echo '{answer(token='t')}'"
    assert bearer(await load_credentials(plugin(tmp_path, noisy))) == "Bearer t"


@pytest.mark.parametrize("place", ["file", "data"])
async def test_an_exec_plugin_that_wants_the_cluster_gets_its_authority(tmp_path, place):
    pem = made()
    (tmp_path / "ca.crt").write_text(pem)
    authority = {"file": {"certificate-authority": "ca.crt"}, "data": {"certificate-authority-data": embedded(pem)}}
    said = f"echo \"$KUBERNETES_EXEC_INFO\" > {tmp_path}/info; echo '{answer(token='t')}'"
    plugin(tmp_path, said, provideClusterInfo=True)
    config = json.loads((tmp_path / "kubeconfig").read_text())
    for_it = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}}
    extensions = [{"name": "other", "extension": {}}, for_it]
    config["clusters"][0]["cluster"] |= authority[place] | {"extensions": extensions}
    await load_credentials(written(tmp_path, **config))
    told = json.loads((tmp_path / "info").read_text())["spec"]["cluster"]
    assert told == {
        "server": "https://127.0.0.1:6443",
        "certificate-authority-data": embedded(pem),
        "config": {"audience": "us"},
    }


@pytest.mark.parametrize(
    ("script", "more", "message"),
    [
        ("echo no >&2; exit 3", {}, "ended with 3: no"),
        ("echo nonsense", {}, "no ExecCredential"),
        (f"echo '{answer()}'", {}, "neither a token nor a certificate"),
        (f"echo '{answer(token='t', expirationTimestamp='2030-01-02T03:04:05')}'", {}, "has no time zone"),
        ("true", {"command": "/no/such/plugin", "installHint": "get it there"}, "No such file.*; get it there"),
        ("true", {"interactiveMode": "Always"}, "nobody to ask"),
        (f"echo '{answer(token='t', expirationTimestamp='0001-01-01T00:00:00Z')}'", {}, "makes no sense"),
        (f"echo '{answer(token='t', expirationTimestamp='9999-12-31T23:59:59-23:59')}'", {}, "makes no sense"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", {}, "no ExecCredential"),
        ("cat /dev/zero", {}, "answered with more than 1048576 bytes"),
    ],
)
async def test_an_exec_plugin_that_fails_is_told(tmp_path, script, more, message):
    with pytest.raises(StartError, match=f"exec: .*{message}"):
        await load_credentials(plugin(tmp_path, script, **more))


async def test_an_exec_plugin_that_hangs_is_ended(tmp_path):
    hanging = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": [60]}
    with pytest.raises(ConfigException, match=r"did not answer within 0\.1s"):
        await run_plugin(hanging, cluster={}, folder=tmp_path, deadline_seconds=0.1)


async def test_an_exec_plugin_is_not_looked_for_in_the_working_directory(tmp_path, monkeypatch):
    config = plugin(tmp_path, f"echo '{answer(token='t')}'", command="plugin")
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", f":{os.environ['PATH']}"):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(StartError, match='"plugin": cannot run executable found relative to current directory'):
            await load_credentials(config)
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}:{os.defpath}")
    assert bearer(await load_credentials(config)) == "Bearer t"


async def test_an_exec_plugin_beside_a_kubeconfig_without_a_folder_is_that_one(tmp_path, monkeypatch):
    plugin(tmp_path, f"echo '{answer(token='t')}'")
    monkeypatch.chdir(tmp_path)
    assert bearer(await load_credentials("kubeconfig")) == "Bearer t"
