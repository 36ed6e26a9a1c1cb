import asyncio
import json
import os

import pytest

from agent.adapters.credentials import CredentialReloader, load_credentials
from tests.fakes import FakeClock, running, until

pytestmark = pytest.mark.anyio


class Lanes:
    """Remembers the tokens it was given."""

    def __init__(self):
        self.tokens = []

    async def use(self, credentials):
        self.tokens.append(credentials.authorization)


class Reloading:
    """A kubeconfig with a token file, and the CredentialReloader that watches it."""

    def __init__(self, folder, **user):
        self.token, self.path = folder / "token", folder / "kubeconfig"
        self.user, self.clock, self.connections, self.requested = user, FakeClock(), Lanes(), asyncio.Event()
        self.changes = 0

    def write_token(self, text):
        before = self.token.stat().st_mtime_ns if self.token.exists() else 0
        self.token.write_text(text)
        os.utime(self.token, ns=(before + 10**9, before + 10**9))

    async def loop(self):
        self.write_token("first")
        config = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"tokenFile": "token", **self.user}}],
        }
        self.path.write_text(json.dumps(config))
        return CredentialReloader(
            kubeconfig=str(self.path),
            current=await load_credentials(str(self.path)),
            connections=[self.connections],
            requested=self.requested,
            clock=self.clock,
            on_change=self._changed,
        )

    def _changed(self):
        self.changes += 1

    async def pass_time(self, seconds):
        """Move the clock, and wait for the threads that read files, which know nothing of it."""
        for _ in range(seconds):
            await self.clock.advance(1)
            await until(lambda: self.clock.is_waited_for)


@pytest.fixture
def reloading(tmp_path):
    return Reloading(tmp_path)


async def test_a_changed_token_file_is_used_within_seconds(reloading):
    async with running(await reloading.loop()):
        reloading.write_token("second\n")
        await reloading.pass_time(6)
    assert reloading.connections.tokens == ["Bearer second"]
    assert reloading.changes == 1


async def test_a_file_that_was_only_touched_changes_nothing(reloading):
    async with running(await reloading.loop()):
        reloading.write_token("first")
        await reloading.pass_time(20)
    assert reloading.connections.tokens == []


async def test_on_request_it_looks_at_once(reloading):
    async with running(await reloading.loop()):
        reloading.token.write_text("second")
        reloading.requested.set()
        await reloading.pass_time(1)
    assert reloading.connections.tokens == ["Bearer second"]


async def test_a_file_that_does_not_load_keeps_what_is_in_use_and_is_said_once(reloading, caplog):
    async with running(await reloading.loop()):
        reloading.write_token("")
        await reloading.pass_time(20)
        assert reloading.connections.tokens == []
        reloading.write_token("second")
        await reloading.pass_time(7)
    assert reloading.connections.tokens == ["Bearer second"]
    messages = [record.msg for record in caplog.records]
    assert messages.count("Unable to reload credentials, keeping those in use") == 1


async def test_a_server_that_knows_nobody_does_not_make_us_read_all_the_time(reloading, monkeypatch):
    reads = []

    async def counted(*arguments):
        reads.append(arguments)
        return await load_credentials(*arguments)

    monkeypatch.setattr("agent.adapters.credentials.load_credentials", counted)
    async with running(await reloading.loop()):
        for _ in range(5):
            for _ in range(100):
                reloading.requested.set()
                await asyncio.sleep(0)
            await reloading.pass_time(1)
    assert 1 <= len(reads) <= 10


async def test_an_authority_and_no_verification_keep_what_is_in_use_and_are_said_once(reloading, caplog):
    loop = await reloading.loop()
    config = json.loads(reloading.path.read_text())
    config["clusters"][0]["cluster"] |= {"certificate-authority-data": "QQ==", "insecure-skip-tls-verify": True}
    async with running(loop):
        reloading.path.write_text(json.dumps(config))
        await reloading.pass_time(30)
    assert reloading.connections.tokens == []
    errors = [record.args["err"] for record in caplog.records if record.msg.startswith("Unable to reload credentials")]
    assert [str(error).rpartition(": ")[2] for error in errors] == [
        "specifying a root certificates file with the insecure flag is not allowed"
    ]
