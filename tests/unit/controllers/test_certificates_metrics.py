from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest

from agent.controllers.certificates import CertificateMetrics
from agent.core.x509 import Certificate
from tests.fakes import START


@pytest.fixture
def certificate():
    fields = dict.fromkeys(Certificate.__dataclass_fields__, ())
    return Certificate(
        **fields | {"not_before": START - timedelta(hours=2), "not_after": START + timedelta(seconds=90.9)}
    )


def values(metrics, certificate):
    return {
        family.name + sample.suffix: sample.value
        for family in metrics.families(certificate, START)
        for sample in family.samples
        if "le" not in sample.labels
    }


def test_what_is_left_of_a_certificate_is_reported_in_whole_seconds(certificate):
    assert values(CertificateMetrics("client"), certificate)["kubelet_certificate_manager_client_ttl_seconds"] == 90
    over = replace(certificate, not_after=START - timedelta(seconds=1.5))
    assert values(CertificateMetrics("server"), over)["kubelet_certificate_manager_server_ttl_seconds"] == -1
    assert values(CertificateMetrics("server"), None)["kubelet_certificate_manager_server_ttl_seconds"] == inf


def test_errors_and_rotations_are_counted_under_kubelets_names(certificate):
    client, server = CertificateMetrics("client"), CertificateMetrics("server")
    for metrics in (client, server):
        metrics.failed()
        metrics.renewed(None, START)
        metrics.renewed(certificate, START)
    assert values(client, certificate) == {
        "kubelet_certificate_manager_client_ttl_seconds": 90,
        "kubelet_certificate_manager_client_expiration_renew_errors": 1,
        "fake_kubelet_certificate_rotations_total": 2,
    }
    assert values(server, certificate) == {
        "kubelet_certificate_manager_server_ttl_seconds": 90,
        "kubelet_server_expiration_renew_errors": 1,
        "fake_kubelet_certificate_rotations_total": 2,
        "kubelet_certificate_manager_server_rotation_seconds_sum": 7200,
        "kubelet_certificate_manager_server_rotation_seconds_count": 1,
    }
