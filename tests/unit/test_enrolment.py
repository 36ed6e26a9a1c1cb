import base64
import json

import pytest

from agent.adapters.certificates.early import early_child
from agent.adapters.certificates.smith import Smith
from agent.adapters.certificates.store import PemStore
from agent.core.x509 import read_certificates
from agent.enrolment import enrol
from agent.loops.weather import Weather
from agent.ports import StartError
from tests.fakes import FakeClock
from tests.settings import Certificates, Config

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
    return await Smith().self_signed("n1")


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


async def enrolled(pair, path, *, keys=None, **certificates):
    clock = Today(pair.certificate_pem)
    config = Config(node_name="n1", kubeconfig=path, certificates=Certificates(**certificates))
    return await enrol(config, clock=clock, weather=Weather(clock), on_new=lambda: None, keys=keys)


async def test_plain_credentials_need_nothing_before_or_beside_them(pair, tmp_path):
    found = await enrolled(pair, kubeconfig(tmp_path, embedded(pair)))
    assert (found.first, found.lasting, found.pair) == ((), (), None)


async def test_a_token_is_not_rotated(pair, tmp_path):
    path = kubeconfig(tmp_path, {"token": "t"})
    found = await enrolled(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
    assert (found.first, found.lasting) == ((), ())


async def test_kubeadms_embedded_certificate_is_taken_into_the_store(pair, tmp_path):
    path = kubeconfig(tmp_path, embedded(pair))
    found = await enrolled(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
    assert found.first == ()
    assert found.lasting
    assert found.pair.read_text() == pair.certificate_pem + pair.key_pem


async def test_a_folder_that_cannot_be_written_does_not_keep_the_node_from_starting(pair, tmp_path, caplog):
    path = kubeconfig(tmp_path, embedded(pair))
    found = await enrolled(pair, path, rotate_client=True, directory="/proc/nowhere")
    assert found.first == ()
    assert "Unable to set the cert/key pair" in caplog.text


async def test_a_bootstrap_without_a_file_to_write_is_refused(pair):
    with pytest.raises(StartError, match="--bootstrap-kubeconfig needs --kubeconfig"):
        await enrolled(pair, "", bootstrap_kubeconfig="/b")


@pytest.mark.parametrize("rotate", [False, True])
async def test_a_bootstrap_that_is_not_there_is_named(pair, tmp_path, rotate):
    none = tmp_path / "none"
    with pytest.raises(StartError, match=f"unable to load bootstrap kubeconfig: .*{none}"):
        await enrolled(pair, str(tmp_path / "k"), bootstrap_kubeconfig=str(none), rotate_client=rotate)


@pytest.mark.parametrize("rotate", [False, True])
async def test_with_a_good_kubeconfig_the_bootstrap_is_not_even_opened(pair, tmp_path, rotate):
    path = kubeconfig(tmp_path, embedded(pair))
    found = await enrolled(
        pair, path, bootstrap_kubeconfig="/none", rotate_client=rotate, directory=str(tmp_path / "pki")
    )
    assert found.first == ()


async def test_where_but_the_kubeconfig_is_missing_no_child_waits_for_the_next_rotation(pair, tmp_path):
    bootstrap, path = kubeconfig(tmp_path, {"token": "t"}), str(tmp_path / "missing")
    settings = {"bootstrap_kubeconfig": bootstrap, "rotate_client": True, "directory": str(tmp_path / "pki")}
    await PemStore(tmp_path / "pki", "kubelet-client").update(*pair)
    child = early_child(Config(node_name="n1", kubeconfig=path, certificates=Certificates(**settings)))
    found = await enrolled(pair, path, keys=Smith(child), **settings)
    assert found.first == ()
    assert child.returncode is not None


async def test_an_embedded_certificate_that_is_none_is_told(pair, tmp_path):
    data = base64.b64encode(b"nonsense").decode()
    path = kubeconfig(tmp_path, {"client-certificate-data": data, "client-key-data": data})
    text = (tmp_path / "kubelet.conf").read_text()
    (tmp_path / "kubelet.conf").write_text(text.replace("https://", "http://"))
    with pytest.raises(StartError, match="does not load: there is no certificate in it"):
        await enrolled(pair, path, rotate_client=True, directory=str(tmp_path / "pki"))
