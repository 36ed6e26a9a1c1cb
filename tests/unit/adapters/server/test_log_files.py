import os

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from agent.adapters.server.log_files import LogFiles
from agent.core.routing import unescaped

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path):
    logs = tmp_path / "log"
    (logs / "sub").mkdir(parents=True)
    (logs / "a.log").write_text("hello\n")
    (logs / "binary").write_bytes(b"\x00\x01")
    (logs / "sub" / "index.html").write_text("<p>index")
    (logs / "a b&<c>.txt").write_text("x")
    (logs / "data").mkdir()
    (logs / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("linked")
    (tmp_path / "secret").write_text("secret")
    os.mkfifo(logs / "pipe")
    (logs / "loop").symlink_to("loop")
    (logs / "zero").symlink_to("/dev/zero")
    (logs / "endless").symlink_to("/proc/self/mem")
    return logs


@pytest.fixture
async def ask(folder):
    files = LogFiles(folder)

    async def handler(request):
        return await files.answer(request, {"logpath": unescaped(request.rel_url.raw_path).removeprefix("/logs/")})

    server = web.Server(handler)
    runner = web.ServerRunner(server)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def get(path, on_head=lambda: None, **headers):
            url = URL(f"http://127.0.0.1:{port}/logs/{path}", encoded=True)
            async with session.get(url, headers=headers, allow_redirects=False) as response:
                on_head()
                return response.status, response.headers, await response.read()

        yield get
    await runner.cleanup()


async def test_a_directory_lists_its_names_escaped_and_sorted(ask):
    status, headers, body = await ask("")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.decode().startswith('<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n')
    assert '<a href="a%20b&%3Cc%3E.txt">a b&amp;&lt;c&gt;.txt</a>\n<a href="a.log">a.log</a>\n' in body.decode()
    assert '<a href="sub/">sub/</a>' in body.decode()


async def test_a_journal_query_is_not_heard_as_in_a_kubelet_without_enable_system_log_query(ask):
    assert (await ask("?query=kubelet"))[::2] == (await ask(""))[::2]


async def test_a_file_is_told_with_its_kind_and_its_time(ask):
    status, headers, body = await ask("a.log")
    assert (status, body, headers["Content-Type"]) == (200, b"hello\n", "text/plain; charset=utf-8")
    assert headers["Accept-Ranges"] == "bytes"
    assert (await ask("a.log", **{"If-Modified-Since": headers["Last-Modified"]}))[0] == 304
    assert (await ask("binary"))[1]["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("asked", "status", "body", "told"),
    [
        ("bytes=1-2", 206, b"el", "bytes 1-2/6"),
        ("bytes=0-", 206, b"hello\n", "bytes 0-5/6"),
        ("bytes=-3", 206, b"lo\n", "bytes 3-5/6"),
        ("bytes=4-99", 206, b"o\n", "bytes 4-5/6"),
        ("bytes=90-", 416, b"invalid range: failed to overlap\n", "bytes */6"),
        ("bytes=3-1", 416, b"invalid range\n", None),
        ("lines=1-2", 416, b"invalid range\n", None),
        ("bytes=-", 416, b"invalid range\n", None),
        ("bytes=" + "9" * 5000 + "-", 416, b"invalid range\n", None),
        ("bytes=0-" + "9" * 5000, 416, b"invalid range\n", None),
        ("bytes=-" + "9" * 5000, 416, b"invalid range\n", None),
        ("bytes=\u0661-\u0662", 416, b"invalid range\n", None),
        ("bytes=--1", 416, b"invalid range\n", None),
        ("bytes=-9223372036854775807", 206, b"hello\n", "bytes 0-5/6"),
    ],
)
async def test_a_part_of_a_file_can_be_asked_for(ask, asked, status, body, told):
    found = await ask("a.log", Range=asked)
    assert (found[0], found[2], found[1].get("Content-Range")) == (status, body, told)


@pytest.mark.parametrize(
    ("since", "status"),
    [
        ("Fri, 31 Dec 9999 23:59:59 GMT", 304),
        ("Mon, 01 Jan 0001 00:00:00 GMT", 200),
        ("Thu, 01 Jan 99999 00:00:00 GMT", 200),
        ("Thu, 01 Jan 99999999999999999999 00:00:00 GMT", 200),
        ("Thu, 01 Jan " + "9" * 5000 + " 00:00:00 GMT", 200),
        ("Thu, -1 Jan -2024 -1:-1:-1 -9999", 200),
        ("Mon, 01 Jan 2024 99:99:99 GMT", 200),
        (",,,,", 200),
        ("soon", 200),
        ("0", 200),
        ("-1", 200),
        ("", 200),
    ],
)
async def test_a_time_that_no_calendar_has_is_as_good_as_none(ask, since, status):
    assert (await ask("a.log", **{"If-Modified-Since": since}))[0] == status


@pytest.mark.parametrize("seconds", [2**40, -(2**40), 2**62, -(2**33)])
async def test_a_file_of_another_age_is_served_all_the_same(ask, folder, seconds):
    try:
        os.utime(folder / "a.log", (0, seconds))
    except OSError:
        pytest.skip("this file system has no such time")
    for headers in ({}, {"If-Modified-Since": "Fri, 31 Dec 9999 23:59:59 GMT"}):
        assert (await ask("a.log", **headers))[0] in {200, 304}


async def test_names_that_are_no_text_are_listed_and_served(ask, folder):
    name = os.fsencode(folder) + b"/\xff\n<b>"
    with open(name, "w") as file:  # noqa: ASYNC230, PTH123  pathlib has no bytes
        file.write("odd")
    status, _, body = await ask("")
    assert status == 200
    assert b'<a href="%FF%0A%3Cb%3E">?\n&lt;b&gt;</a>' in body
    assert (await ask("%FF%0A%3Cb%3E"))[2] == b"odd"
    assert (await ask("%FF%0A%3Cb%3E/"))[1]["Location"] == "../%FF%0A%3Cb%3E"


async def test_a_file_that_shrinks_while_it_is_read_ends_the_connection(ask, folder):
    with (folder / "big").open("wb") as file:
        file.truncate(64 * 2**20)  # more than any buffer on the way takes
    with pytest.raises(aiohttp.ClientError):
        await ask("big", on_head=lambda: os.truncate(folder / "big", 0))


@pytest.mark.parametrize(
    ("path", "location"),
    [("sub", "sub/"), ("a.log/", "../a.log"), ("sub/index.html", "./")],
)
async def test_another_spelling_leads_to_the_one_that_counts(ask, path, location):
    status, headers, _ = await ask(path)
    assert (status, headers["Location"]) == (301, location)


async def test_an_index_stands_for_its_directory(ask):
    assert (await ask("sub/"))[2] == b"<p>index"


async def test_symbolic_links_are_followed(ask):
    assert (await ask("link"))[2] == b"linked"


@pytest.mark.parametrize(
    "path",
    [
        *("../secret", "%2e%2e/secret", "..%2fsecret", "sub/../../secret", "a%00b", "nope", "a.log/x", "pipe", "zero"),
        *("loop", "loop/x", "a" * 300, "a/" * 3000, "%ff", "%ed%a0%80", "%c0%ae%c0%ae/secret", "%0a", "a%0d%0ab"),
    ],
)
async def test_there_is_nothing_outside_and_nothing_that_hangs(ask, path):
    status, _, body = await ask(path)
    assert (status, body) == (404, b"404 page not found\n")


async def test_a_link_to_what_cannot_be_read_as_a_file_is_empty(ask):
    assert (await ask("endless"))[::2] == (200, b"")


async def test_a_file_that_may_not_be_read_is_forbidden(ask, folder, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    assert (await ask("a.log"))[0] == 403
