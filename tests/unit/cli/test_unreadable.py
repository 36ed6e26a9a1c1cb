"""A directory of credentials that we may not read, or that is none, is told in one line."""

import ctypes
import json
import subprocess
import sys
from itertools import product

import pytest

from tests.cluster.agent_process import apart
from tests.settings import CHECK

pytestmark = pytest.mark.slow  # a process for each case
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


def as_anybody():
    """Let root, too, read only what the mode of a file says."""
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def places(tmp_path):
    """Where a file may be that cannot be read."""
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "file").write_text("")
    yield {"closed": tmp_path / "closed", "file": tmp_path / "file", "open": tmp_path}
    (tmp_path / "closed").chmod(0o700)


def failed(tmp_path, *arguments):
    """The one line that a command ends with."""
    argv = [sys.executable, "-m", "agent", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "closed")}
    options = {"env": environment, "capture_output": True, "text": True, "timeout": 60, "preexec_fn": as_anybody}
    ended = subprocess.run(argv, check=False, **options)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


def bootstrap(folder):
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (folder / "bootstrap.conf").write_text(json.dumps(document))
    return f"--bootstrap-kubeconfig={folder / 'bootstrap.conf'}"


CASES = [
    (kubeconfig, certificates, rotate)
    for kubeconfig, certificates, rotate in product(("closed", "file", "open"), ("closed", "file"), ("true", "false"))
    # without a folder to write to, rotation goes on asking, as a kubelet does
    if (kubeconfig, certificates, rotate) != ("open", "file", "true")
]


@pytest.mark.parametrize(("kubeconfig", "certificates", "rotate"), CASES)
def test_a_bootstrap(tmp_path, places, kubeconfig, certificates, rotate):
    flags = [f"--kubeconfig={places[kubeconfig]}/kubelet.conf", f"--rotate-certificates={rotate}", "--healthz-port=0"]
    line = failed(tmp_path, bootstrap(tmp_path), *flags, *apart(tmp_path), f"--cert-dir={places[certificates]}/pki")
    assert any(f"{places[name]}/" in line for name in ("closed", "file"))
    assert any(words in line for words in ("Permission denied", "Not a directory", "File exists"))


def test_a_bootstrap_kubeconfig(tmp_path, places):
    kubeconfig = f"--kubeconfig={tmp_path}/kubelet.conf"
    line = failed(tmp_path, f"--bootstrap-kubeconfig={places['closed']}/bootstrap.conf", kubeconfig, *apart(tmp_path))
    assert "closed/bootstrap.conf: Permission denied" in line


def test_a_serving_certificate(tmp_path, places):
    bootstrap(tmp_path)
    flags = [f"--kubeconfig={tmp_path}/bootstrap.conf", "--rotate-server-certificates", "--healthz-port=0"]
    line = failed(tmp_path, *flags, *apart(tmp_path), f"--cert-dir={places['closed']}/pki")
    assert f"unable to read the certificates in {places['closed']}/pki: Permission denied" in line


JOIN = ("join", "127.0.0.1:1", "--token=abcdef.0123456789abcdef", "--discovery-token-unsafe-skip-ca-verification")


def test_join(tmp_path, places):
    line = failed(tmp_path, *JOIN, f"--kubeconfig={places['closed']}/kubelet.conf")
    assert "closed/kubelet.conf: Permission denied" in line


def test_config_check(tmp_path, places):
    line = failed(tmp_path, *CHECK, bootstrap(tmp_path), f"--kubeconfig={places['closed']}/kubelet.conf")
    assert "closed/kubelet.conf: Permission denied" in line
