"""Every command of README.md and docs/ does what its page says, or the page says which test runs it elsewhere."""

import re
from urllib.parse import unquote

import pytest
import yaml

from tests.docs.page import LABS, ROOT, WORDS, Page, pages

PAGES = pages()
RUNS = [(page, environment) for page in PAGES if page.name not in LABS for environment in page.environments]
_COMMAND = re.compile(
    r"^( {4,}|\s*\$ )(sudo )?(fake-kubelet|kubectl|kubeadm|make|pip|docker|podman|systemctl|\$) ", re.MULTILINE
)
_LINK = re.compile(r"(?:\]\(|src=\")([^)\"\s]+)[)\"]")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "environment"), RUNS, ids=repr)
def test_the_commands_do_what_the_page_says(page, environment, start_reader):
    reader = start_reader(environment)
    for block in page.steps(environment):
        reader.do(block)


@pytest.mark.parametrize("page", PAGES, ids=repr)
def test_a_block_is_run_or_its_mark_says_why_not(page):
    for block in page.blocks:
        kind, value = block.mark
        where = f"{page.name}:{block.line}"
        if kind == "test":
            assert block.words <= WORDS.keys(), f"{where}: the words are {', '.join(WORDS)}"
        if kind == "not run":
            assert len(value.split()) >= 3, f"{where}: say why"
            for test in re.findall(r"tests/[\w/.]*\w", value):
                assert (ROOT / test).exists(), f"{where}: there is no {test}"
        if kind and kind != "file":
            assert block.language == "sh", f"{where}: the mark is for commands"


@pytest.mark.parametrize("page", PAGES, ids=repr)
def test_commands_are_in_blocks_that_are_run(page):
    assert page.text.count("\n```") % 2 == 0
    elsewhere = [block for block in page.blocks if block.language != "sh" and not block.mark[0]]
    for text in (page.prose(), *(block.text for block in elsewhere)):
        assert not (command := _COMMAND.search(text)), command
    marks = re.findall(r"^<!-- (?:test|not run|file): ", page.text, re.MULTILINE)
    assert len(marks) == sum(bool(block.mark[0]) for block in page.blocks), "a mark stands right before its block"


@pytest.mark.parametrize("page", PAGES, ids=repr)
def test_links_lead_somewhere(page):
    for link in _LINK.findall(page.prose()):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (ROOT / page.name).parent / path if path else ROOT / page.name
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target.read_text("utf-8")), link


@pytest.mark.parametrize("page", PAGES, ids=repr)
def test_yaml_can_be_read(page):
    for block in page.blocks:
        if block.language == "yaml" and not block.file_name:
            list(yaml.safe_load_all(block.text))


def test_the_index_has_every_page():
    index = Page("docs/README.md").text
    missing = [page.name for page in PAGES if f"({page.name.removeprefix('docs/')})" not in index]
    assert set(missing) <= {"README.md", "docs/README.md"}


def _anchors(text):
    """The anchors that GitHub gives to the headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
