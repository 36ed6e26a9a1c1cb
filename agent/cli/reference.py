"""docs/flags.md from the table of flags: `python -m agent.cli.reference > docs/flags.md`."""

import sys
from collections.abc import Iterator

from agent.adapters.settings.schema import FAKE
from agent.adapters.settings.table import FLAGS, GROUPS, OURS, Flag
from agent.adapters.settings.table.row import ACCEPTED, REMOVED
from agent.cli.grammar import default_settings, default_text, metavar
from agent.core.kubelet_data.version import KUBELET_VERSION

_INTRODUCTION = f"""# Flags

Every flag of kubelet {KUBELET_VERSION}, and a few of our own. Written by `python -m agent.cli.reference`; do not edit.

- The grammar is kubelet's: `--flag=value`, `--flag value`, `--bool`, `--bool=false`, `-v 2`, `_` for `-`.
- A flag with a field can be set in the file of `--config` instead; flags win over `--config-dir`, which wins over
  `--config`. `fake-kubelet config show` shows where each value came from.
- Defaults are the same with and without `--config`. A kubelet without `--config` serves everybody and evicts nothing;
  `--legacy-flag-defaults` gives these defaults of old: `--anonymous-auth=true`, `--authentication-token-webhook=false`,
  `--authorization-mode=AlwaysAllow`, `--read-only-port=10255`, and neither `--eviction-hard` nor `--client-ca-file`.
- *d* marks what kubelet deprecates in favour of its config file.
"""
_ABOUT = {
    OURS: "Fields marked † are of `FakeKubeletConfiguration`, a second document in the same file.",
    ACCEPTED: (
        "What containers, their images, volumes and cgroups would need, none of which are here. Beside those: static\n"
        "pods from a URL (`--manifest-url`, `--http-check-frequency`), the lock file, how fast the API server is\n"
        "asked (`--kube-api-qps`), limits of the process itself, how the log is buffered, and cAdvisor's stores.\n"
        "Checked as kubelet checks them, and listed once at start."
    ),
    REMOVED: (
        "Taken with a warning that names the version; `--strict-flags` refuses them as kubelet does. None has an\n"
        "effect but `--experimental-bootstrap-kubeconfig`, which means `--bootstrap-kubeconfig`."
    ),
}


def flags_page() -> str:
    """Return the whole page."""
    return "\n".join([_INTRODUCTION, *(line for group in GROUPS for line in _section(group))])


def _section(group: str) -> Iterator[str]:
    rows = [flag for flag in FLAGS.values() if flag.group == group]
    if group == ACCEPTED:
        rows.sort(key=lambda flag: flag.name)
    yield f"## {group}\n"
    if group in _ABOUT:
        yield f"{_ABOUT[group]}\n"
    if group == REMOVED:
        yield "| flag | removed in |\n|---|---|"
        yield from (f"| `--{flag.name}` | v{flag.removed} |" for flag in rows)
    else:
        yield "| flag | takes | default | field | |\n|---|---|---|---|---|"
        yield from (_row(flag) for flag in rows)
    yield ""


def _row(flag: Flag) -> str:
    takes, default = metavar(flag), default_text(flag, default_settings())
    field = f"`{flag.field}`{' †' if flag.field in FAKE.fields else ''}" if flag.field else ""
    mark = "*d*" if flag.deprecated else ""
    cells = (f"`--{flag.name}`", _code(takes), _code(default), field, f"{flag.help} {mark}".strip())
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


if __name__ == "__main__":
    sys.stdout.write(flags_page())
