"""The image without rights, without a writable root and with little memory, against a real control plane."""

import json
import os
import secrets
from pathlib import Path

import pytest

from tests.cluster.command import CommandFailed
from tests.cluster.island import ADDRESS
from tests.cluster.waiting import eventually
from tests.container.contained import MEMORY_BYTES
from tests.container.image import BASE, IMAGE, ROOT

MOST_BYTES_ABOVE_BASE = 90_000_000


def test_the_image_is_small(engine, image, figure):
    above = engine.size_bytes(image) - engine.size_bytes(BASE)
    figure("image", f"{above / 1e6:.1f} MB above {BASE}")
    assert above <= MOST_BYTES_ABOVE_BASE


def test_the_image_says_how_to_run_it_and_what_it_is(engine, image):
    told = json.loads(engine.podman("image", "inspect", image))[0]
    config = told["Config"]
    assert config["User"] == "65532:65532"  # a number: Kubernetes can see by itself that this is not root
    assert config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] == ["fake-kubelet"]
    assert told["Healthcheck"]["Test"] == ["CMD", "fake-kubelet", "healthcheck"]
    assert list(config["Volumes"]) == ["/var/lib/kubelet"]
    labels = {name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()}
    assert labels["title"] == "fake-kubelet"
    assert labels["licenses"] == "Apache-2.0"


def test_its_base_can_be_named_by_digest(engine, image):
    """No label is looked at: buildah 1.28 takes them from its cache, whatever the arguments."""
    digest = engine.podman("image", "inspect", BASE, "--format", "{{.Digest}}")
    pinned = f"{IMAGE}-pinned:{secrets.token_hex(6)}"
    engine.build(ROOT, pinned, DIGEST=digest)
    engine.remove(pinned)
    with pytest.raises(CommandFailed, match="image not known"):
        engine.build(ROOT, pinned, DIGEST=f"sha256:{'0' * 64}")


def test_it_joins_with_a_token_and_is_ready_and_healthy_and_tells_of_the_host(joined):
    node = joined.wait_until_ready()
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": ADDRESS}
    capacity = node["status"]["capacity"]
    assert capacity["cpu"] == str(os.cpu_count())
    assert capacity["memory"] == f"{_meminfo_kib('MemTotal')}Ki"
    eventually(joined.is_healthy)


def test_it_has_its_byte_code_and_no_pip_of_its_own(engine, image):
    look = ("--rm", "--network=none", "--no-healthcheck", "--entrypoint=find", image)
    found = engine.podman("run", *look, "/opt/fake-kubelet", "-name", "supervisor.*.pyc", "-o", "-name", "pip*")
    assert [Path(line).name for line in found.splitlines()] == ["supervisor.cpython-313.pyc"]


def test_sigterm_ends_it_with_0_and_started_again_it_is_the_same_node(joined, figure):
    uid, starts = joined.wait_until_ready()["metadata"]["uid"], joined.log_text().count("Started kubelet")
    code, took_seconds = joined.stop()
    figure("SIGTERM to exit 0 in a container", f"{took_seconds:.1f} s")
    assert code == 0
    joined.start_again()
    eventually(lambda: joined.log_text().count("Started kubelet") == starts + 1)
    assert "joined already" in joined.log_text()
    eventually(joined.is_healthy)
    assert joined.wait_until_ready()["metadata"]["uid"] == uid


def test_callers_that_connect_and_say_nothing_do_not_end_it(joined, figure, tmp_path):
    """Under the memory limit of config/kind."""
    with joined.silent_callers(2500, tmp_path / "callers.log") as accepted:
        assert accepted > 0
        eventually(joined.is_healthy)  # with all of them there
    peak = joined.peak_bytes() / (1 << 20)
    figure("memory of a container with 2,500 silent callers", f"{peak:.0f} MiB at most")
    assert joined.starts() == (True, 0)
    eventually(joined.is_healthy)


def test_a_container_that_still_looks_for_its_cluster_ends_when_it_is_told_to(start):
    pin = f"sha256:{'0' * 64}"
    nobody = ("join", "192.0.2.99:6443", "--token=abcdef.0123456789abcdef", f"--discovery-token-ca-cert-hash={pin}")
    container = start(*nobody, join=False)
    eventually(lambda: "Retrying discovery" in container.log_text())
    assert container.stop()[0] == 0


def test_with_capacity_from_cgroup_its_own_limits_are_told(start):
    capacity = start("--capacity-from=cgroup").wait_until_ready()["status"]["capacity"]
    assert (capacity["cpu"], capacity["memory"]) == ("500m", f"{MEMORY_BYTES >> 20}Mi")


def _meminfo_kib(field: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
