"""What strict decoding rejects in config files, in words that help; the daemon decodes leniently, as kubelet does."""

import re
from collections.abc import Iterator

from agent.adapters.settings.effective import Effective
from agent.adapters.settings.go_json import leaves
from agent.adapters.settings.pflag import did_you_mean
from agent.adapters.settings.schema import KUBELET

_UNKNOWN_FIELD = re.compile(r'unknown field "(.+)"')


def strict_errors(settings: Effective) -> Iterator[str]:
    """Yield an error with its file for all that is rejected, and the field that may have been meant."""
    paths = [path.split(".") for path, _ in leaves(KUBELET)]
    for file, error in settings.strict_errors:
        unknown = _UNKNOWN_FIELD.fullmatch(error)
        depth = unknown[1].count(".") + 1 if unknown else 0
        same_depth = {".".join(parts[:depth]) for parts in paths}
        yield f"{file}: {error}{did_you_mean(unknown[1], same_depth) if unknown else ''}"
