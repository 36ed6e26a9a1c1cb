import json
import re

import pytest
import yaml

from agent.adapters.certificates.bootstrap_files import (
    bootstrap_document,
    check_node_name,
    client_pair,
    kubeconfig_document,
    remove_after_join,
    write_kubeconfig,
)
from agent.adapters.credentials import Credentials
from agent.adapters.kubeconfig import read_kubeconfig
from agent.adapters.settings.build_config import build_config
from agent.adapters.settings.effective import effective
from agent.ports import StartError
from tests.unit.core.certificates import made

CLUSTER, USER = {"server": "https://127.0.0.1:1"}, {"token": "t"}


def test_what_join_wrote_is_removed_and_can_be_read_until_then(tmp_path):
    path = tmp_path / "bootstrap-kubelet.conf"
    path.write_text(yaml.safe_dump(bootstrap_document(CLUSTER, USER)))
    assert read_kubeconfig(path).user == USER
    remove_after_join(path)
    assert not path.exists()
    remove_after_join(path)  # there is nothing to do, and nothing to say


@pytest.mark.parametrize(
    "text",
    [yaml.safe_dump(kubeconfig_document(CLUSTER, USER)), "", "- a", "extensions: 7", "extensions: [7]", "{", "a: \0"],
)
def test_what_somebody_else_wrote_stays(tmp_path, text):
    path = tmp_path / "bootstrap-kubelet.conf"
    path.write_text(text)
    remove_after_join(path)
    assert path.read_text() == text


def test_what_is_written_for_a_certificate_does_not_say_that_it_may_be_removed(tmp_path):
    bootstrap, kubeconfig = tmp_path / "bootstrap-kubelet.conf", tmp_path / "kubelet.conf"
    bootstrap.write_text(yaml.safe_dump(bootstrap_document(CLUSTER, USER)))
    write_kubeconfig(kubeconfig, bootstrap=bootstrap, pem=tmp_path / "pki")
    remove_after_join(kubeconfig)
    assert kubeconfig.exists()


def test_a_bootstrap_that_verifies_nothing_and_has_an_authority_leads_to_no_kubeconfig(tmp_path):
    bootstrap, kubeconfig = tmp_path / "bootstrap-kubelet.conf", tmp_path / "kubelet.conf"
    both = {"certificate-authority-data": "QQ==", "insecure-skip-tls-verify": True}
    bootstrap.write_text(yaml.safe_dump(kubeconfig_document(CLUSTER | both, USER)))
    with pytest.raises(StartError, match="specifying a root certificates file with the insecure flag is not allowed"):
        write_kubeconfig(kubeconfig, bootstrap=bootstrap, pem=tmp_path / "pki")
    assert not kubeconfig.exists()


@pytest.mark.parametrize(
    "user", [{"client-certificate-data": "!"}, {"client-certificate": "/nowhere"}, {"client-key": 7}]
)
def test_a_pair_that_cannot_be_read_is_told(tmp_path, user):
    path = tmp_path / "kubelet.conf"
    path.write_text(json.dumps(kubeconfig_document(CLUSTER, user)))
    with pytest.raises(StartError, match="unable to load kubeconfig"):
        client_pair(path)


@pytest.mark.parametrize("common_name", ["system:node:n1", "kubernetes-admin", ""])
def test_credentials_of_this_node_or_of_no_node_are_fine(common_name):
    check_node_name(credentials_with(made(common_name=common_name)), config_of("n1"))


def test_credentials_of_another_node_name_it_and_the_flag_to_use():
    wrong = "the credentials of /k are for node edge-1, and this is node vm: use --hostname-override=edge-1"
    with pytest.raises(StartError, match=re.escape(wrong)):
        check_node_name(credentials_with(made(common_name="system:node:edge-1")), config_of("vm"))


def test_credentials_of_another_node_are_replaced_by_a_bootstrap():
    credentials = credentials_with(made(common_name="system:node:edge-1"))
    check_node_name(credentials, config_of("vm", "--bootstrap-kubeconfig=/b"))


@pytest.mark.parametrize(
    "pem", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_certificate_that_cannot_be_read_is_the_api_servers_to_judge(pem):
    check_node_name(credentials_with(pem), config_of("vm"))


def credentials_with(pem):
    return Credentials(source="/k", server="https://127.0.0.1:1", tls=False, certificate_pem=pem)


def config_of(name, *flags):
    return build_config(effective(["--kubeconfig=/k", f"--hostname-override={name}", *flags]))
