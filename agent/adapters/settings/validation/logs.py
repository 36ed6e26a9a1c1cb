"""Checks of logging, tracing and metrics."""

import posixpath
from typing import Any, get_args
from urllib.parse import urlsplit

from agent.adapters.settings.feature_gates import FeatureGates
from agent.adapters.settings.go_json import Document
from agent.adapters.settings.validation.fault import INVALID, Faults
from agent.core.config import LoggingFormat
from agent.core.kubelet_data.version import KUBELET_VERSION
from agent.core.times import parse_seconds
from agent.klog import quoted

_MILLION = 1_000_000
_PREVIOUS = f"1.{int(KUBELET_VERSION.split('.')[1]) - 1}"


def logging(config: Document, gates: FeatureGates) -> Faults:
    """Check the logging part, which kubelet checks and applies before the rest."""
    if _flush_seconds(config["flushFrequency"]) <= 0:
        shown = quoted(value) if isinstance(value := config["flushFrequency"], str) else value
        yield f"logging.flushFrequency: Invalid value: {shown}: Must be greater than zero"
    if config["format"] not in get_args(LoggingFormat):
        yield f"logging.format: Invalid value: {quoted(config['format'])}: Unsupported log format"
    if config["verbosity"] > 2**31 - 1:
        yield f"logging.verbosity: Invalid value: {config['verbosity']}: Must be <= {2**31 - 1}"
    if config["vmodule"] and config["format"] != "text":
        yield "logging.vmodule: Forbidden: Only supported for text log format"
    yield from _patterns(config["vmodule"])
    if not gates.enabled("LoggingAlphaOptions"):
        yield from _alpha_options(config["options"])


def _patterns(vmodule: list[Document]) -> Faults:
    for index, item in enumerate(vmodule):
        if not item["filePattern"]:
            yield f"logging.vmodule[{index}]: Required value: File pattern must not be empty"
        elif set(item["filePattern"]) & set("=,"):
            yield (
                f"logging.vmodule[{index}]: Invalid value: {quoted(item['filePattern'])}: "
                "File pattern must not contain equal sign or comma"
            )


def _alpha_options(formats: Document) -> Faults:
    for form, options in formats.items():
        for name, unset in (("splitStream", False), ("infoBufferSize", "0")):
            if options[name] != unset:
                yield f"logging.options.{form}.{name}: Forbidden: Feature LoggingAlphaOptions is disabled"


def _flush_seconds(value: Any) -> float:
    return value / 10**9 if isinstance(value, int) else parse_seconds(value)


def log_query(document: Document, _: FeatureGates) -> Faults:
    """Check the container runtime's endpoint, and the node's logs over HTTP."""
    if not document["containerRuntimeEndpoint"]:
        yield f"{INVALID}the containerRuntimeEndpoint was not specified or empty"
    if document["enableSystemLogQuery"] and not document["enableSystemLogHandler"]:
        yield f"{INVALID}enableSystemLogHandler is required for enableSystemLogQuery"


def tracing(document: Document, _: FeatureGates) -> Faults:
    """Check the sampling rate of traces, and where they are sent."""
    config = document.get("tracing") or {}
    rate, endpoint = config.get("samplingRatePerMillion"), config.get("endpoint")
    path = "tracing.samplingRatePerMillion"
    if rate is not None and rate < 0:
        yield f"{path}: Invalid value: {rate}: sampling rate must be positive"
    if rate is not None and rate > _MILLION:
        yield f"{path}: Invalid value: {rate}: sampling rate per million must be less than or equal to one million"
    if endpoint is not None and "//" in endpoint:
        scheme = urlsplit(endpoint).scheme
        if scheme not in {"dns", "unix", "unix-abstract"}:
            yield (
                f"tracing.endpoint: Invalid value: {quoted(endpoint)}: unsupported scheme: {scheme}.  "
                "Options are none, dns, unix, or unix-abstract."
            )


def hidden_metrics(document: Document, _: FeatureGates) -> Faults:
    """Check the version whose hidden metrics are shown: only the previous minor version has any."""
    version = document["showHiddenMetricsForVersion"]
    if version not in {"", _PREVIOUS}:
        yield (
            f"--show-hidden-metrics-for-version must be omitted or have the value '{_PREVIOUS}'. "
            "Only the previous minor version is allowed"
        )


def pod_logs(document: Document, _: FeatureGates) -> Faults:
    """Check the directory of pod logs: absolute, normalised and ASCII, since it is a label in metrics."""
    path = document["podLogsDir"]
    if not path.startswith("/"):
        yield f"{INVALID}pod logs path {quoted(path)} must be absolute path"
    if posixpath.normpath(path) != path:
        yield f"{INVALID}pod logs path {quoted(path)} must be normalized"
    if not path.isascii():
        yield f"{INVALID}pod logs path {quoted(path)} mut contains ASCII characters only"
