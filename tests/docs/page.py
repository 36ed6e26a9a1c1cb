"""The command blocks of README.md and docs/, and what the comment before a block says about its test.

```sh                            run in the order of the page; the ```text block right after it is compared
<!-- test: real stays -->        the words of WORDS, before a block
<!-- not run: why -->            shown only; names the test that runs the same elsewhere
<!-- file: kubelet.yaml -->      the block is the content of this file, which later blocks use
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
LABS = {"docs/lab-node-health.md", "docs/non-graceful-shutdown.md"}  # tests/faults/test_lab.py runs them
EMBEDDED, REAL, CHECKOUT = "embedded", "real", "checkout"
WORDS = {
    EMBEDDED: "run against the embedded cluster; the default",
    REAL: "run against a real control plane",
    CHECKOUT: "run in a copy of the checkout, with nothing installed",
    "stays": "runs on, until the next block that does",
    "fails": "ends with another exit code than 0",
}
_BLOCK = re.compile(
    r"(?:^<!-- (?P<key>test|not run|file): (?P<value>.*?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$"
    r"(?:\n\n^```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, the mark before it, and the lines that the page shows as its output."""

    line: int
    language: str
    text: str
    mark: tuple[str, str]
    promises: tuple[str, ...] = ()

    @property
    def words(self) -> set[str]:
        """What the mark says about the test."""
        kind, value = self.mark
        return set(value.split()) if kind == "test" else set()

    @property
    def why_not_run(self) -> str:
        """The reason of a block that is only shown."""
        kind, value = self.mark
        return value if kind == "not run" else ""

    @property
    def file_name(self) -> str:
        """The file whose content this is."""
        kind, value = self.mark
        return value if kind == "file" else ""

    @property
    def environment(self) -> str:
        """Where the block is run."""
        return next((name for name in (REAL, CHECKOUT) if name in self.words), EMBEDDED)


class Page:
    """One Markdown file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = (ROOT / name).read_text("utf-8")

    def __repr__(self) -> str:
        return self.name

    @cached_property
    def blocks(self) -> list[Block]:
        """All fenced blocks, in order."""
        return [_block(self.text, match) for match in _BLOCK.finditer(self.text)]

    @property
    def environments(self) -> list[str]:
        """The environments that the page's commands need."""
        return sorted({block.environment for block in self.commands()})

    def commands(self, environment: str | None = None) -> list[Block]:
        """The blocks that are run, all or those of one environment."""
        run = [block for block in self.blocks if block.language == "sh" and not block.why_not_run]
        return [block for block in run if environment in {None, block.environment}]

    def steps(self, environment: str) -> list[Block]:
        """The blocks that are run in one environment, and the files that they may use."""
        commands = self.commands(environment)
        return [block for block in self.blocks if block.file_name or block in commands]

    def prose(self) -> str:
        """The page without its blocks; lines keep their numbers."""
        return re.sub(
            r"^```.*?^```$", lambda match: "\n" * match[0].count("\n"), self.text, flags=re.DOTALL | re.MULTILINE
        )


def pages() -> list[Page]:
    """README.md and all of docs/."""
    return [Page("README.md"), *(Page(f"docs/{path.name}") for path in sorted((ROOT / "docs").glob("*.md")))]


def _block(text: str, match: re.Match[str]) -> Block:
    return Block(
        line=text.count("\n", 0, match.start("language")) + 1,
        language=match["language"],
        text=match["text"],
        mark=(match["key"] or "", match["value"] or ""),
        promises=tuple((match["output"] or "").splitlines()),
    )
