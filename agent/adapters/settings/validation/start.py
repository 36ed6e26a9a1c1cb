"""Checks that a kubelet makes only while it starts, as far as they need nothing of the host."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation.fault import Faults
from agent.core.config import AuthorizationMode, TLSVersion
from agent.core.errors import ConfigError
from agent.core.quantity import Quantity, QuantityError
from agent.klog import quoted

# the cipher suites of Go's crypto/tls: of TLS 1.3, and key exchange by cipher
_CIPHERS = """
AES_128_GCM_SHA256 AES_256_GCM_SHA384 CHACHA20_POLY1305_SHA256
ECDHE_ECDSA_WITH_AES_128_CBC_SHA ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
ECDHE_ECDSA_WITH_AES_256_CBC_SHA ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 ECDHE_ECDSA_WITH_CHACHA20_POLY1305
ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 ECDHE_ECDSA_WITH_RC4_128_SHA
ECDHE_RSA_WITH_3DES_EDE_CBC_SHA ECDHE_RSA_WITH_AES_128_CBC_SHA ECDHE_RSA_WITH_AES_128_CBC_SHA256
ECDHE_RSA_WITH_AES_128_GCM_SHA256 ECDHE_RSA_WITH_AES_256_CBC_SHA ECDHE_RSA_WITH_AES_256_GCM_SHA384
ECDHE_RSA_WITH_CHACHA20_POLY1305 ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 ECDHE_RSA_WITH_RC4_128_SHA
RSA_WITH_3DES_EDE_CBC_SHA RSA_WITH_AES_128_CBC_SHA RSA_WITH_AES_128_CBC_SHA256 RSA_WITH_AES_128_GCM_SHA256
RSA_WITH_AES_256_CBC_SHA RSA_WITH_AES_256_GCM_SHA384 RSA_WITH_RC4_128_SHA
"""
_CURVES_MAX = 65535


def check_start(document: Document, flags: Mapping[str, Any]) -> None:
    """Raise ConfigError with the first fault, as a kubelet ends with it."""
    for fault in _tls(document):
        raise ConfigError(f"failed to construct kubelet dependencies: {fault}")
    for rule in (_lock(flags), _authorization(document), _managers(document), _qos_reserved(document), _logs(document)):
        for fault in rule:
            raise ConfigError(f"failed to run Kubelet: {fault}")


def _tls(document: Document) -> Faults:
    supported = {f"TLS_{name}" for name in _CIPHERS.split()}
    for name in document["tlsCipherSuites"]:
        if name not in supported:
            yield f"Cipher suite {name} not supported or doesn't exist"
    if document["tlsMinVersion"] not in get_args(TLSVersion):
        yield f"unknown tls version {quoted(document['tlsMinVersion'])}"
    curves = document["tlsCurvePreferences"]
    for index, curve in enumerate(curves):
        if not 0 < curve <= _CURVES_MAX:
            yield f"curve preference {curve} is out of range (must be 1-{_CURVES_MAX})"
        if curve in curves[:index]:
            yield f"duplicate curve preference {curve}"


def _lock(flags: Mapping[str, Any]) -> Faults:
    if flags.get("exit-on-lock-contention") and not flags.get("lock-file"):
        yield "cannot exit on lock file contention: no lock file specified"


def _authorization(document: Document) -> Faults:
    mode = document["authorization"]["mode"]
    if not mode:
        yield "no authorization mode specified"
    elif mode not in get_args(AuthorizationMode):
        yield f"unknown authorization mode {mode}"


def _managers(document: Document) -> Faults:
    for field, policies in (("cpuManagerPolicy", {"none", "static"}), ("memoryManagerPolicy", {"None", "Static"})):
        if document[field] not in policies:
            yield f"unknown policy: {quoted(document[field])} for {field}"


def _qos_reserved(document: Document) -> Faults:
    for name, text in document["qosReserved"].items():
        prefix = "--qos-reserved value failed to parse:"
        failed = f"{prefix} failed to parse percentage {quoted(text)} for {quoted(name)} resource"
        if name != "memory":
            yield f"{prefix} cannot reserve {quoted(name)} resource"
        elif not re.fullmatch(r"[+-]?[0-9]+%", text):
            yield f"{failed}: percentage expected, got '{text}'"
        elif not 0 <= int(text[:-1]) <= 100:
            yield f"{failed}: percentage must be between 0 and 100"


def _logs(document: Document) -> Faults:
    size = document["containerLogMaxSize"]
    try:
        Quantity.parse(size)
    except QuantityError as error:
        yield (
            "failed to create kubelet: failed to initialize container log manager: "
            f"failed to parse container log max size {quoted(size)}: {error}"
        )
