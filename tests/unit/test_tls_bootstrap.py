import base64
import json

import pytest

from agent.adapters.certificates.key_worker import KeyWorker
from agent.adapters.certificates.store import PemStore
from agent.adapters.child_process import prestart_key_worker
from agent.core.x509 import read_certificates
from agent.machinery.runner import Scheduling
from agent.machinery.workqueue import WorkQueue
from agent.ports import StartError
from agent.process import Process
from agent.tls_bootstrap import plan_bootstrap
from tests.fakes import FakeClock, FakeHost
from tests.settings import Certificates, Config, ProcessConfig

pytestmark = pytest.mark.anyio


class Today(FakeClock):
    """A clock that agrees with certificates made a moment ago."""

    def __init__(self, certificate_pem):
        super().__init__()
        self._now = read_certificates(certificate_pem)[0].not_before

    def now(self):
        return self._now


@pytest.fixture(scope="module")
async def pair():
    return await KeyWorker().self_signed("n1")


def kubeconfig(folder, user):
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubelet.conf"
    path.write_text(json.dumps(document))
    return str(path)


def embedded(pair):
    certificate, key = (base64.b64encode(text.encode()).decode() for text in pair)
    return {"client-certificate-data": certificate, "client-key-data": key}


async def planned(pair, path, *, key_worker=None, **certificates):
    clock = Today(pair.certificate_pem)
    process_config = ProcessConfig(kubeconfig=path, certificates=Certificates(**certificates))
    process = Process(FakeHost(), clock, sensor_seconds=1.0)
    health = process.health.failures_only("certificates")
    scheduling = Scheduling(
        loop="certificates", queue=WorkQueue(clock), dependencies=process.dependencies, health=health
    )
    return await plan_bootstrap(
        Config(process=process_config), scheduling=scheduling, on_new=lambda: None, key_worker=key_worker
    )


async def test_plain_credentials_need_nothing_before_or_beside_them(pair, tmp_path):
    plan = await planned(pair, kubeconfig(tmp_path, embedded(pair)))
    assert (plan.controllers, plan.is_awaited, plan.pair) == ((), False, None)


async def test_a_token_is_not_rotated(pair, tmp_path):
    path = kubeconfig(tmp_path, {"token": "t"})
    plan = await planned(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
    assert (plan.controllers, plan.is_awaited) == ((), False)


async def test_kubeadms_embedded_certificate_is_taken_into_the_store(pair, tmp_path):
    path = kubeconfig(tmp_path, embedded(pair))
    plan = await planned(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
    assert not plan.is_awaited
    assert plan.controllers
    assert plan.pair.read_text() == pair.certificate_pem + pair.key_pem


async def test_a_folder_that_cannot_be_written_does_not_keep_the_node_from_starting(pair, tmp_path, caplog):
    path = kubeconfig(tmp_path, embedded(pair))
    plan = await planned(pair, path, rotate_client=True, directory="/proc/nowhere")
    assert not plan.is_awaited
    assert "Unable to set the cert/key pair" in caplog.text


async def test_a_bootstrap_without_a_file_to_write_is_refused(pair):
    with pytest.raises(StartError, match="--bootstrap-kubeconfig needs --kubeconfig"):
        await planned(pair, "", bootstrap_kubeconfig="/b")


@pytest.mark.parametrize("rotate", [False, True])
async def test_a_bootstrap_that_is_not_there_is_named(pair, tmp_path, rotate):
    none = tmp_path / "none"
    with pytest.raises(StartError, match=f"unable to load bootstrap kubeconfig: .*{none}"):
        await planned(pair, str(tmp_path / "k"), bootstrap_kubeconfig=str(none), rotate_client=rotate)


@pytest.mark.parametrize("rotate", [False, True])
async def test_with_a_good_kubeconfig_the_bootstrap_is_not_even_opened(pair, tmp_path, rotate):
    path = kubeconfig(tmp_path, embedded(pair))
    plan = await planned(
        pair, path, bootstrap_kubeconfig="/none", rotate_client=rotate, directory=str(tmp_path / "pki")
    )
    assert not plan.is_awaited


async def test_where_but_the_kubeconfig_is_missing_no_child_waits_for_the_next_rotation(pair, tmp_path):
    bootstrap, path = kubeconfig(tmp_path, {"token": "t"}), str(tmp_path / "missing")
    settings = {"bootstrap_kubeconfig": bootstrap, "rotate_client": True, "directory": str(tmp_path / "pki")}
    await PemStore(tmp_path / "pki", "kubelet-client").update(*pair)
    child = prestart_key_worker(ProcessConfig(kubeconfig=path, certificates=Certificates(**settings)))
    plan = await planned(pair, path, key_worker=KeyWorker(child), **settings)
    assert not plan.is_awaited
    assert child.returncode is not None


async def test_an_embedded_certificate_that_does_not_parse_is_reported(pair, tmp_path):
    data = base64.b64encode(b"nonsense").decode()
    path = kubeconfig(tmp_path, {"client-certificate-data": data, "client-key-data": data})
    text = (tmp_path / "kubelet.conf").read_text()
    (tmp_path / "kubelet.conf").write_text(text.replace("https://", "http://"))
    with pytest.raises(StartError, match="does not load: there is no certificate in it"):
        await planned(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
