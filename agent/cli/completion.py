"""What a shell passes for completion, rewritten for click, which does not know kubelet's grammar.

bash passes `--pods=si` as three words, and wants `simulate`; zsh and fish pass one, and want `--pods=simulate`. For
click, `--anonymous-auth=true` is a mistake, after which it completes nothing.
"""

import shlex
from collections.abc import MutableMapping, Sequence
from typing import NamedTuple

from agent.adapters.settings.pflag import WITHOUT_VALUE
from agent.adapters.settings.table import FLAGS

_BASH_WORDS, _BASH_INDEX, _OTHERS_LINE = "COMP_WORDS", "COMP_CWORD", "_TYPER_COMPLETE_ARGS"


class Typed(NamedTuple):
    """The flag whose value is typed after `=`, if one is, and what the shell wants before each value."""

    flag: str = ""
    prefix: str = ""


def rewrite_typed(environment: MutableMapping[str, str]) -> Typed:
    """Rewrite the line that a shell has passed in these variables. Returns what is being typed."""
    is_bash = _BASH_WORDS in environment
    text = environment.get(_BASH_WORDS if is_bash else _OTHERS_LINE, "")
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed yet
        return Typed()
    if is_bash:
        index = int(environment.get(_BASH_INDEX, "0"))
        words, is_begun = words[: index + 1], len(words) > index
    else:
        is_begun = not text.endswith(" ")
    finished = _joined(words)
    last = finished.pop() if is_begun and finished else ""
    finished = [_without_boolean(word) for word in finished]
    if is_bash:
        environment[_BASH_WORDS] = shlex.join([*finished, last] if last else finished)
        environment[_BASH_INDEX] = str(len(finished))
    else:
        environment[_OTHERS_LINE] = shlex.join([*finished, last]) if last else f"{shlex.join(finished)} "
    name, equals, _ = last.partition("=")
    if not equals or not name.startswith("--"):
        return Typed()
    return Typed(name[2:], "" if is_bash else f"{name}=")


def _joined(words: Sequence[str]) -> list[str]:
    """Join `--flag`, `=` and `value`, as bash splits them."""
    joined: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "=" and joined and joined[-1].startswith("--"):
            joined[-1] += word + (rest.pop(0) if rest else "")
        else:
            joined.append(word)
    return joined


def _without_boolean(word: str) -> str:
    name, equals, _ = word.partition("=")
    flag = FLAGS.get(name[2:]) if equals and name.startswith("--") else None
    return name if flag and flag.kind in WITHOUT_VALUE else word
