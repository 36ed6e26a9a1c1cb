import signal
import subprocess
import sys

import pytest

from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.certificates.store import PemStore
from agent.core.x509 import private_key
from agent.ports import NotSigned
from tests.unit.core.certificates import encrypted

pytestmark = pytest.mark.anyio

UPDATE = """
import asyncio, os, sys
from pathlib import Path
from agent.adapters.certificates.store import PemStore
from tests.cluster.killed import watch
store, pair = PemStore(Path(sys.argv[1]), "kubelet-client"), Path(sys.argv[2]).read_text().split("=====")
watch(int(sys.argv[3]), sys.argv[1])
asyncio.run(store.update(*pair))
"""


@pytest.fixture(scope="module")
async def pairs():
    """Two pairs that are good."""
    return [await KeyWorker().self_signed(name) for name in ("first", "second")]


@pytest.fixture
def store(tmp_path):
    return PemStore(tmp_path / "pki", "kubelet-client")


def name_of(certificate):
    return certificate.common_name.partition("@")[0]


async def test_an_empty_folder_has_no_certificate(store):
    assert await store.current() is None
    assert await store.key() == ""


async def test_what_was_stored_is_found_again(store, pairs):
    await store.update(*pairs[0])
    assert name_of(await store.current()) == "first"
    assert await store.key() == pairs[0].key_pem
    target = store.path.readlink()
    assert target.is_absolute()
    assert target.read_text() == pairs[0].certificate_pem + pairs[0].key_pem
    assert target.stat().st_mode & 0o777 == 0o600


async def test_a_key_of_another_certificate_is_not_stored(store, pairs):
    await store.update(*pairs[0])
    with pytest.raises(NotSigned, match="unable to store the new cert/key pair"):
        await store.update(pairs[1].certificate_pem, pairs[0].key_pem)
    assert name_of(await store.current()) == "first"


async def test_a_file_in_the_place_of_the_link_is_left_alone(store, pairs):
    store.path.parent.mkdir()
    store.path.write_text(pairs[0].certificate_pem + pairs[0].key_pem)
    with pytest.raises(NotSigned, match="to be a symlink but it is a file"):
        await store.update(*pairs[1])


async def test_a_folder_that_cannot_be_written_is_named(pairs):
    with pytest.raises(NotSigned, match="/proc/nowhere"):
        await PemStore("/proc/nowhere", "kubelet-client").update(*pairs[0])


async def test_a_pair_that_was_cut_off_gives_way_to_the_one_before(store, pairs, tmp_path):
    await store.update(*pairs[0])
    older = store.path.readlink()
    older.rename(older.with_name("kubelet-client-2020-01-01-00-00-00.pem"))
    await store.update(*pairs[1])
    store.path.readlink().write_text(pairs[1].certificate_pem[:200])
    assert name_of(await store.current()) == "first"


async def test_the_link_that_a_kubelet_had_no_time_to_move_is_moved(store, pairs):
    await store.update(*pairs[0])
    store.path.rename(store.path.with_name("kubelet-client-updated.pem"))
    assert name_of(await store.current()) == "first"
    assert store.path.is_symlink()


async def test_plain_files_are_used_where_there_is_nothing_better(store, pairs, tmp_path):
    store.path.parent.mkdir()
    (tmp_path / "pki" / "kubelet-client.crt").write_text(pairs[0].certificate_pem)
    (tmp_path / "pki" / "kubelet-client.key").write_text(pairs[0].key_pem)
    assert name_of(await store.current()) == "first"
    given = (tmp_path / "given.crt", tmp_path / "given.key")
    for path, text in zip(given, pairs[1], strict=True):
        path.write_text(text)
    assert name_of(await PemStore(tmp_path / "pki", "kubelet-client", other=given).current()) == "second"


async def test_an_encrypted_key_is_no_reason_to_ask_on_the_terminal(store, pairs, caplog):
    store.path.parent.mkdir()
    store.path.write_text(pairs[0].certificate_pem + encrypted(pairs[0].key_pem))
    assert await store.current() is None
    assert "the key is encrypted, and a daemon has nobody to ask" in str([record.args for record in caplog.records])


def updated(folder, pair, *, killed_at):
    """Store a pair in a process of its own, which is killed before its n-th change of a file; the exit code."""
    text = folder.with_name("pair")
    text.write_text("=====".join(pair))
    argv = [sys.executable, "-c", UPDATE, str(folder), str(text), str(killed_at)]
    return subprocess.run(argv, check=False).returncode


@pytest.mark.parametrize("step", range(1, 8))
async def test_a_power_cut_at_any_step_leaves_the_old_pair_or_the_new_one(store, pairs, tmp_path, step):
    await store.update(*pairs[0])
    dated = store.path.readlink()
    old = dated.rename(dated.with_name("kubelet-client-2020-01-01-00-00-00.pem"))
    store.path.unlink()
    store.path.symlink_to(old)
    code = updated(tmp_path / "pki", pairs[1], killed_at=step)
    current = PemStore(tmp_path / "pki", "kubelet-client")
    assert name_of(await current.current()) == ("second" if code == 0 else "first")
    assert code in {0, -signal.SIGKILL}
    await current.update(*pairs[1])
    assert name_of(await current.current()) == "second"
    left = {path.name for path in (tmp_path / "pki").iterdir()}
    assert all(name.endswith(".pem") and "updated" not in name for name in left), left


async def test_no_step_of_an_update_was_left_out(pairs, tmp_path):
    assert updated(tmp_path / "pki", pairs[1], killed_at=7) == 0


async def test_a_key_beside_certificates_is_told_from_them(pairs):
    assert private_key("".join(pairs[0])) == pairs[0].key_pem
