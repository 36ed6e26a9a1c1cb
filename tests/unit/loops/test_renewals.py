from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest

from agent.core.x509 import Certificate
from agent.loops.renewals import CLIENT, SERVER, Renewals
from tests.fakes import START


@pytest.fixture
def certificate():
    fields = dict.fromkeys(Certificate.__dataclass_fields__, ())
    return Certificate(
        **fields | {"not_before": START - timedelta(hours=2), "not_after": START + timedelta(seconds=90.9)}
    )


def told(renewals, certificate):
    return {
        family.name + sample.suffix: sample.value
        for family in renewals.families(certificate, START)
        for sample in family.samples
        if "le" not in sample.labels
    }


def test_what_is_left_of_a_certificate_is_told_in_whole_seconds(certificate):
    assert told(Renewals(CLIENT), certificate)["kubelet_certificate_manager_client_ttl_seconds"] == 90
    over = replace(certificate, not_after=START - timedelta(seconds=1.5))
    assert told(Renewals(SERVER), over)["kubelet_certificate_manager_server_ttl_seconds"] == -1
    assert told(Renewals(SERVER), None)["kubelet_certificate_manager_server_ttl_seconds"] == inf


def test_errors_and_rotations_are_counted_under_kubelets_names(certificate):
    client, server = Renewals(CLIENT), Renewals(SERVER)
    for renewals in (client, server):
        renewals.failed()
        renewals.succeeded(None, START)
        renewals.succeeded(certificate, START)
    assert told(client, certificate) == {
        "kubelet_certificate_manager_client_ttl_seconds": 90,
        "kubelet_certificate_manager_client_expiration_renew_errors": 1,
        "fake_kubelet_certificate_rotations_total": 2,
    }
    assert told(server, certificate) == {
        "kubelet_certificate_manager_server_ttl_seconds": 90,
        "kubelet_server_expiration_renew_errors": 1,
        "fake_kubelet_certificate_rotations_total": 2,
        "kubelet_certificate_manager_server_rotation_seconds_sum": 7200,
        "kubelet_certificate_manager_server_rotation_seconds_count": 1,
    }
