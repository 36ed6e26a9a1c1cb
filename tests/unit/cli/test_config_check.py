import socket

import pytest

from agent.cli.config_check import check

pytestmark = pytest.mark.anyio

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
NO_PORTS = {"hostname-override": "n1", "enable-server": False, "healthz-port": 0}


@pytest.fixture
def found(tmp_path):
    """What is found in a file with these fields, under these flags."""

    async def run(fields="", **flags):
        file = tmp_path / "kubelet.yaml"
        file.write_text(HEADER + fields)
        names = {name.replace("_", "-"): value for name, value in flags.items()}
        return await check(NO_PORTS | {"config": str(file)} | names)

    return run


async def test_good_settings_have_no_findings(found):
    findings = await found("maxPods: 5\n")
    assert (findings.node_name, findings.errors, findings.warnings) == ("n1", [], [])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ("maxPod: 50\n", 'kubelet.yaml: unknown field "maxPod"; did you mean maxPods?'),
        (
            "authentication: {webhok: {enabled: true}}\n",
            'kubelet.yaml: unknown field "authentication.webhok"; did you mean authentication.webhook?',
        ),
        ("bananas: 1\n", 'kubelet.yaml: unknown field "bananas"'),
        (
            "systemReserved: {memory: 256MB}\n",
            'kubelet.yaml: systemReserved.memory: "256MB" is no quantity; use M or Mi for the unit',
        ),
        (
            "evictionHard: {nodefs.available: 1GB}\n",
            'kubelet.yaml: evictionHard.nodefs.available: "1GB" is no quantity; use G or Gi for the unit',
        ),
        ("kubeReserved: {memory: 9Pi}\n", 'Resource "memory" has a reservation of'),
    ],
)
async def test_a_mistake_in_the_file_is_named_with_file_field_and_what_was_meant(found, fields, error):
    (only,) = (await found(fields)).errors
    assert error in only


async def test_all_mistakes_are_found_at_once(found):
    errors = (await found("maxPod: 50\n", node_ip="not-an-ip,::1")).errors
    assert [error.partition(": ")[2].partition(";")[0] for error in errors] == [
        'unknown field "maxPod"',
        '"not-an-ip" is no IP address',
    ]


async def test_a_threshold_that_is_crossed_right_now_is_an_error(found):
    (error,) = (await found("evictionHard: {memory.available: 99%}\n")).errors
    assert error.startswith("the eviction threshold of memory.available is crossed right now: ")
    assert error.endswith("; the Node would report MemoryPressure")


async def test_a_port_in_use_is_an_error_and_for_healthz_a_warning(found):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        own = {"enable_server": True, "address": "127.0.0.1", "read_only_port": 0, "port": port}
        findings = await found(**own, healthz_port=port)
    assert findings.errors == [f"--port={port} on 127.0.0.1: already in use"]
    assert findings.warnings == [f"--healthz-port={port} on 127.0.0.1: already in use"]


OPEN = {"enable_server": True, "anonymous_auth": True, "authorization_mode": "AlwaysAllow", "port": 20259}


async def test_an_api_that_is_open_to_strangers_is_one_warning(found):
    findings = await found(**OPEN)
    assert findings.errors == []
    (warning,) = findings.warnings
    assert warning.startswith("open to strangers: port 20259 on 0.0.0.0 serves ")
    assert "\n" not in warning


@pytest.mark.parametrize(
    "closed",
    [
        {"address": "127.0.0.1"},
        {"address": "::1"},
        {"enable_server": False},
        {"anonymous_auth": False},
        {"authorization_mode": "Webhook"},
    ],
)
async def test_an_api_that_strangers_cannot_use_is_no_warning(found, closed):
    assert (await found(**OPEN | closed)).warnings == []


async def test_the_legacy_defaults_are_open_to_strangers_and_the_others_are_not():
    flags = NO_PORTS | {"enable-server": True, "port": 20259}
    assert (await check(flags)).warnings == []
    (warning,) = (await check(flags | {"legacy-flag-defaults": True, "read-only-port": 0})).warnings
    assert "open to strangers" in warning


async def test_a_file_that_cannot_be_read_is_named_once(tmp_path):
    path = tmp_path / "none.yaml"
    assert (await check({"config": str(path)})).errors == [f"cannot read --config {path}: No such file or directory"]


async def test_what_the_daemon_only_logs_is_a_warning(found):
    findings = await found(container_runtime="remote")
    assert findings.errors == []
    assert findings.warnings == ["Flag was removed from kubelet and has no effect: --container-runtime v1.27"]
