import asyncio
import json
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from aiohttp import web
from yarl import URL

from agent import klog
from agent.adapters.server.api import KubeletApi, full_table, read_only_table
from agent.adapters.server.sources import Sources
from agent.adapters.server.telemetry import ServerMetrics
from tests.fakes import FakeClock, idle, settle, until
from tests.settings import Serving

pytestmark = pytest.mark.anyio

RUNNING = {"name": "c", "image": "nginx:1", "state": {"running": {"startedAt": "2026-01-01T10:00:00Z"}}}
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u1"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1"}, {"name": "early", "image": "nginx:1"}]},
    "status": {"containerStatuses": [RUNNING]},
}


class Node:
    """A node's API without a door before it."""

    def __init__(self, folder):
        self.clock, self.pods, self.faults, self.serving = FakeClock(), [POD], {}, Serving()
        self.stats = []
        self.metrics = ServerMetrics(self.clock)
        self.sources = Sources(
            started=self.clock.now(),
            configz={"kubeletconfig": {"port": 10250}},
            flagz={"v": "0", "address": "0.0.0.0"},
            log_directory=folder,
            usage=self,
            metrics=self.resource,
            probe_metrics=self.resource,
            pods=lambda: map(msgspec.json.encode, self.pods),
            pod=self._pod,
            understands_commands=True,
            faults=lambda: self.faults,
        )

    def _pod(self, namespace, name):
        named = (
            pod for pod in self.pods if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name)
        )
        return next(named, None)

    async def summary(self, only_cpu_and_memory):
        if self.faults:
            raise OSError("no such cgroup")
        return {"only": only_cpu_and_memory}, iter(self.stats)

    async def resource(self):
        return b"m 1\n"

    cadvisor = resource

    @asynccontextmanager
    async def served(self, *, read_only=False):
        table = full_table(self.serving, self.sources, self.metrics, self.clock)
        if read_only:
            table = read_only_table(self.sources, self.metrics, self.clock)
        api = KubeletApi(table, metrics=self.metrics, clock=self.clock)
        runner = web.ServerRunner(web.Server(api.answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    async def ask(self, method, path, *, read_only=False, **options):
        async with self.served(read_only=read_only) as port, aiohttp.ClientSession() as session:
            url = URL(f"http://127.0.0.1:{port}{path}", encoded=isinstance(path, URL))
            async with session.request(method, url, allow_redirects=False, **options) as response:
                return response.status, await response.text(), response.headers


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


NOTHING_RUNS = "no containers run on this node: it is a fake-kubelet"


@pytest.mark.parametrize(
    ("request_line", "status", "text"),
    [
        ("POST /exec/default/web/c?command=ls&output=1", 500, NOTHING_RUNS),
        ("POST /exec/default/web/u1/c?output=1", 500, NOTHING_RUNS),
        ("POST /attach/default/web/c?output=1", 500, NOTHING_RUNS),
        ("POST /run/default/web/c", 500, NOTHING_RUNS),
        ("POST /portForward/default/web", 500, NOTHING_RUNS),
        ("POST /portForward/default/web/other", 404, "pod not found"),
        ("POST /exec/default/web/nope?output=1", 500, 'container not found ("nope")'),
        ("POST /exec/default/nope/c?output=1", 404, "pod does not exist"),
        ("POST /exec/default/web/c?error=1&tty=1", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("POST /checkpoint/default/web/c", 500, f"checkpointing of default/web/c failed ({NOTHING_RUNS})"),
        ("POST /checkpoint/default/web/nope", 404, "container nope does not exist"),
        ("GET /containerLogs/default/web/nope", 404, 'container "nope" not found in pod "web"'),
        ("GET /containerLogs/default/nope/c", 404, 'pod "nope" does not exist'),
        ("GET /containerLogs/default/web/early", 400, 'container "early" in pod "web" is not available'),
        (
            "GET /containerLogs/default/web/c?previous=true",
            400,
            'previous terminated container "c" in pod "web" not found',
        ),
    ],
)
async def test_what_needs_a_container_ends_at_once_and_says_why(node, request_line, status, text):
    assert (await node.ask(*request_line.split(" ", 1)))[:2] == (status, text)


async def test_a_container_tells_its_story(node):
    status, text, _ = await node.ask("GET", "/containerLogs/default/web/c?tailLines=1")
    assert status == 200
    assert "nginx:1 runs in name only" in text


def plain_pod(state):
    """A pod whose command prints something at once, and something else after five seconds."""
    spec = {
        "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", "echo hi; sleep 5; echo there; sleep 60"]}]
    }
    status = {"name": "c", "image": "i", "state": state, "lastState": {}}
    return {"metadata": POD["metadata"], "spec": spec, "status": {"containerStatuses": [status]}}


BEGUN = {"startedAt": "2026-01-02T03:04:05Z"}


@asynccontextmanager
async def followed(node, query="follow=true"):
    """The body of a log that is followed, as it comes."""
    async with (
        node.served() as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        session.get(f"/containerLogs/default/web/c?{query}") as response,
    ):
        yield response


async def test_a_log_is_followed_while_the_command_runs_and_no_longer(node):
    node.pods = [plain_pod({"running": BEGUN})]
    async with followed(node) as response:
        assert await response.content.readline() == b"hi\n"
        await until(lambda: node.clock.is_waited_for)
        await node.clock.advance(5)
        assert await response.content.readline() == b"there\n"
        node.pods = [plain_pod({"terminated": {**BEGUN, "finishedAt": "2026-01-02T03:04:12Z", "exitCode": 137}})]
        await node.clock.advance(2)
        assert await response.content.read() == b""


async def test_a_log_that_is_followed_begins_at_its_tail_and_has_its_limit(node):
    node.clock.elapsed = 10.0
    node.pods = [plain_pod({"running": BEGUN})]
    async with followed(node, "follow=true&tailLines=1&limitBytes=5") as response:
        assert await response.content.read() == b"there"


async def test_a_log_is_not_followed_any_more_once_the_client_or_the_pod_is_gone(node):
    node.pods = [plain_pod({"running": BEGUN})]
    async with followed(node) as response:
        await response.content.readline()
        await until(lambda: node.clock.is_waited_for)
        node.pods = []
        await node.clock.advance(2)
        assert await response.content.read() == b""
    node.pods = [plain_pod({"running": BEGUN})]
    async with followed(node, "follow=true&tailLines=0") as response:
        await until(lambda: node.clock.is_waited_for)
        response.close()
        await idle()
        await node.clock.advance(2)
        assert not node.clock.is_waited_for


NO_QUERY, NO_REQUEST = '{"message": "Unable to decode query."}', '{"message": "Invalid request."}'


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("sinceTime=2024-01-01", 400, NO_QUERY),
        ("sinceTime=2024-01-01T00:00:00", 400, NO_QUERY),
        ("sinceTime=2024-13-01T00:00:00Z", 400, NO_QUERY),
        ("sinceSeconds=99999999999999999999", 400, NO_QUERY),
        ("sinceSeconds=1_0", 400, NO_QUERY),
        ("tailLines=x", 400, NO_QUERY),
        ("tailLines=-1", 422, NO_REQUEST),
        ("sinceSeconds=0", 422, NO_REQUEST),
        ("sinceSeconds=5&sinceTime=null", 422, NO_REQUEST),
    ],
)
async def test_a_query_for_logs_that_makes_no_sense_is_refused_as_by_a_kubelet(node, query, status, text):
    assert (await node.ask("GET", f"/containerLogs/default/web/c?{query}"))[:2] == (status, text)


@pytest.mark.parametrize(
    "query",
    [
        "sinceSeconds=99999999999",
        "sinceSeconds=9223372036854775807",
        "sinceTime=",
        "sinceTime=0001-01-01T00:00:00%2B14:00",
        "sinceTime=2024-01-01T00:00:00.123456789Z",
        "tailLines=9223372036854775807&limitBytes=9223372036854775807",
        "previous=False",
    ],
)
async def test_a_query_for_logs_may_reach_as_far_as_its_numbers_do(node, query):
    status, text, _ = await node.ask("GET", f"/containerLogs/default/web/c?{query}")
    assert (status, "runs in name only" in text) == (200, True)


async def test_pods_are_listed(node):
    node.pods = [POD, POD]
    told = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [POD, POD]}
    assert (await node.ask("GET", "/pods"))[1] == json.dumps(told, separators=(",", ":")) + "\n"
    node.pods = []
    empty = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}\n'
    assert (await node.ask("GET", "/pods"))[1] == empty
    assert (await node.ask("GET", "/runningpods/"))[1] == empty


async def test_the_summary_is_asked_for_what_the_query_says(node):
    assert (await node.ask("GET", "/stats/summary?only_cpu_and_memory=true"))[1] == '{\n "only": true,\n "pods": []\n}'
    assert (await node.ask("POST", "/stats/summary"))[1] == '{\n "only": false,\n "pods": []\n}'


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_the_summary_is_indented_as_a_kubelets_however_many_pods_there_are(node, count):
    node.stats = [{"podRef": {"name": "é\n"}, "containers": [{"name": "c"}, {}], "memory": []}] * count
    told = {"only": False, "pods": node.stats}
    assert (await node.ask("GET", "/stats/summary"))[1] == json.dumps(told, indent=1, ensure_ascii=False)


async def test_a_source_that_fails_is_an_internal_error_and_the_loops_turn_healthz_red(node):
    node.faults = {"lease": "not renewed for 50 s"}
    assert (await node.ask("GET", "/stats/summary"))[:2] == (500, "Internal Error: no such cgroup")
    status, text, _ = await node.ask("GET", "/healthz")
    assert (status, "[-]syncloop failed: reason withheld" in text) == (500, True)
    assert 'kubernetes_healthcheck{name="syncloop",type="healthz"} 0' in (await node.ask("GET", "/metrics/slis"))[1]


@pytest.mark.parametrize(
    ("switched_off", "request_line", "text"),
    [
        ({"debugging_handlers": False}, "GET /logs/", "Debug endpoints are disabled.\n"),
        ({"debugging_handlers": False}, "POST /exec/a/b/c", "Debug endpoints are disabled.\n"),
        ({"debugging_handlers": False}, "GET /debug/pprof/cmdline", "Debug endpoints are disabled.\n"),
        ({"system_logs": False}, "GET /logs/", "logs endpoint is disabled.\n"),
        ({"profiling": False}, "GET /debug/pprof/cmdline", "profiling endpoint is disabled.\n"),
        ({"debug_flags": False}, "PUT /debug/flags/v", "flags endpoint is disabled.\n"),
    ],
)
async def test_what_is_switched_off_says_so(node, switched_off, request_line, text):
    node.serving = Serving(**switched_off)
    assert (await node.ask(*request_line.split(" ", 1)))[:2] == (405, text)


async def test_the_read_only_port_has_no_settings_and_nothing_to_debug(node):
    assert (await node.ask("GET", "/metrics", read_only=True))[:2] == (200, "m 1\n")
    assert (await node.ask("GET", "/configz", read_only=True))[:2] == (404, "404 page not found\n")
    assert (await node.ask("GET", "/logs/", read_only=True))[:2] == (405, "Debug endpoints are disabled.\n")


async def test_verbosity_can_be_put_and_nonsense_is_refused(node):
    klog.set_up(0)
    status, text, _ = await node.ask("PUT", "/debug/flags/v", data=b"4")
    assert (status, text) == (200, "successfully set klog.logging.verbosity to 4\n")
    assert klog.logging.getLogger("agent").level == klog.V4
    klog.set_up(0)
    status, text, _ = await node.ask("PUT", "/debug/flags/v", data=b"99999999999")
    assert (status, text) == (400, 'strconv.ParseUint: parsing "99999999999": value out of range\n')


async def test_requests_are_counted_in_a_kubelets_buckets(node):
    for path in ("/metrics/resource", "/metrics/nope", "/debug/pprof/cmdline", "/nonsense"):
        await node.ask("GET", path)
    counted = {tuple(sample.labels.values()): sample.value for sample in node.metrics.families()[0].samples}
    assert counted == {
        ("GET", "metrics/resource", "readonly", "false"): 1,
        ("GET", "other", "readonly", "false"): 2,
        ("GET", "debug", "readonly", "true"): 1,
    }


async def test_a_redirect_keeps_the_query(node):
    status, text, headers = await node.ask("GET", "/logs?a=1")
    assert (status, headers["Location"]) == (307, "/logs/?a=1")
    assert text == '<a href="/logs/?a=1">Temporary Redirect</a>.\n\n'


async def test_tasks_can_be_looked_at(node):
    assert "task " in (await node.ask("GET", "/debug/pprof/goroutine"))[1]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /containerLogs/default/%ff/c", 404),
        ("GET /containerLogs/default/web/%ff%0a%1b", 404),
        ("POST /checkpoint/default/web/%ff", 404),
        ("POST /checkpoint/%ff/%00/%0a", 404),
        ("POST /exec/default/web/%ff?output=1", 500),  # as a kubelet's runtime that does not know it
        ("GET /debug/pprof/%ff", 404),
        ("GET /logs/%ff", 404),
        ("GET /logs/%ff/", 404),
        ("GET /%ff", 404),
        ("GET /pods/%2e%2e", 404),
        ("GET /healthz?exclude=%ff%0a&exclude=%ed%a0%80&verbose", 200),
        ("GET /stats/summary?only_cpu_and_memory=%ff", 200),
        ("GET /containerLogs/default/web/c?tailLines=%D9%A3", 400),
        (f"GET /containerLogs/default/web/c?limitBytes={'9' * 5000}", 400),
        (f"GET /containerLogs/default/web/c?sinceTime={'9' * 5000}", 400),
        ("GET /containerLogs/default/web/c?sinceTime=9999-12-31T23:59:59-23:59", 200),
        ("GET /containerLogs/default/web/c?sinceTime=0001-01-01T00:00:00%2B23:59", 200),
    ],
)
async def test_whatever_stands_in_a_path_or_a_query_it_is_no_failure(node, request_line, status, caplog):
    method, path = request_line.split(" ", 1)
    assert (await node.ask(method, URL(path, encoded=True)))[0] == status
    assert caplog.records == []


async def test_a_port_that_is_no_number_is_refused_whatever_it_is(node):
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Protocol": "v4.channel.k8s.io"}
    for port in ("%ff", "%00", "%0a", "9" * 5000, "%D9%A3", ""):
        path = URL(f"/portForward/default/web?port={port}", encoded=True)
        assert (await node.ask("GET", path, headers=upgrade))[0] == 400
    without = {"Upgrade": "websocket", "Connection": "keep-alive"}
    assert (await node.ask("GET", "/portForward/default/web", headers=without))[1] == NOTHING_RUNS


async def test_an_unexpected_error_is_one_line_a_minute_and_tells_the_caller_nothing(node, caplog):
    node.pods = [{"metadata": {"name": "web", "namespace": "default"}}]  # as no API server has it
    for _ in range(5):
        assert (await node.ask("GET", "/containerLogs/default/web/c"))[:2] == (500, "500 Internal Server Error\n")
    (record,) = {(record.msg, record.args["path"]) for record in caplog.records}
    assert record == ("Unable to answer a request", "/containerLogs/default/web/c")


async def test_who_hangs_up_in_the_middle_of_a_body_is_no_failure(node, caplog):
    head = b"PUT /debug/flags/v HTTP/1.1\r\nHost: n\r\nContent-Length: 9\r\n\r\n"
    async with node.served() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        await settle()
        writer.transport.abort()
        await settle()
    assert caplog.records == []
