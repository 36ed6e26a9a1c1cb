import asyncio
import logging
import os

import pytest

from agent.adapters.manifests import ManifestFiles, manifest_text
from agent.core.pods.static import manifest_hash

pytestmark = pytest.mark.anyio

POD = "{kind: Pod, metadata: {name: %s}, spec: {containers: [{name: main, image: pause}]}}"


async def names(path):
    return [manifest.pod["metadata"]["name"] for manifest in await ManifestFiles(str(path)).read()]


async def test_all_files_of_a_folder_but_hidden_ones_ask_for_a_pod(tmp_path):
    for name in ("b.yaml", "a.json", ".hidden.yaml"):
        (tmp_path / name).write_text(POD % name[0].replace(".", "x"))
    (tmp_path / "folder").mkdir()
    assert await names(tmp_path) == ["a", "b"]


async def test_a_single_file_will_do_and_so_will_none(tmp_path):
    (tmp_path / "one.yaml").write_text(POD % "one")
    assert await names(tmp_path / "one.yaml") == ["one"]
    assert await names(tmp_path / "none") == []


async def test_keys_are_strings_and_times_are_text_as_in_json(tmp_path):
    (tmp_path / "odd.yaml").write_text("{kind: Pod, metadata: {name: a}, spec: {containers: [{1: a, b: 2026-01-01}]}}")
    (manifest,) = await ManifestFiles(str(tmp_path)).read()
    assert manifest.pod["spec"]["containers"] == [{"1": "a", "b": "2026-01-01"}]
    assert len(manifest_hash(manifest, "n1")) == 32


async def test_numbers_are_those_that_go_sees(tmp_path):
    spec = "{containers: [{args: [22:22, 0o644, 010, 1_000, 0x1F, 2026-01-01, yes, 1e3]}]}"
    (tmp_path / "odd.yaml").write_text(f"kind: Pod\nmetadata: {{name: a}}\nspec: {spec}\n---\nkind: Ignored")
    (manifest,) = await ManifestFiles(str(tmp_path)).read()
    (container,) = manifest.pod["spec"]["containers"]
    assert container["args"] == ["22:22", 420, 8, 1000, 31, "2026-01-01", True, 1000]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "line 2, column 1: did not find expected node content"),
        ("a: s3cret: b", "line 1, column 10: mapping values are not allowed in this context"),
        ("\0", "no YAML: ReaderError"),
        ("kind: Node", "it is not a Pod"),
        ("[]", "it is not a Pod"),
        ("{kind: Pod, metadata: 5}", "it has no name"),
        ("{kind: Pod, metadata: {name: a}, spec: {containers: []}}", "it has no containers"),
        ("{kind: Pod, metadata: {name: a, labels: x}, spec: {containers: [{}]}}", "its labels make no sense"),
        ("{kind: Pod, metadata: {name: a, annotations: [x]}, spec: {containers: [{}]}}", "its annotations make no"),
        ("{kind: Pod, metadata: {name: a}, spec: {containers: [{}], tolerations: 5}}", "its tolerations make no"),
        ("{kind: Pod, metadata: {name: a}, spec: {containers: [{}], x: .nan}}", "not JSON compliant"),
        (r'{kind: Pod, metadata: {name: "\ud800"}, spec: {containers: [{}]}}', "invalid Unicode character escape"),
        ("[" * 2000, "exceeded max depth"),
        ("{kind: Pod, metadata: {name: a}, spec: {containers: [&a [*a]]}}", "excessive aliasing"),
        ("{kind: Pod, metadata: {name: ../a}, spec: {containers: [{}]}}", "its name or namespace makes no sense"),
        ("{kind: Pod, metadata: {name: a, namespace: ../..}, spec: {containers: [{}]}}", "its name or namespace makes"),
        ("{kind: Pod, metadata: {name: a, namespace: [b]}, spec: {containers: [{}]}}", "its name or namespace makes"),
        ("#" * (2 * 2**20 + 1), "it is larger than 2097152 bytes"),
    ],
)
async def test_a_file_that_makes_no_sense_is_told_of_and_left_out(tmp_path, caplog, text, fault):
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text(POD % "good")
    with caplog.at_level(logging.ERROR):
        assert await names(tmp_path) == ["good"]
    assert fault in str(caplog.records[0].args)


def bomb(levels):
    """A text of 1 KiB in which each part names the one before ten times."""
    lines = ["x0: &x0 [a]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merge_bomb(levels):
    """The same with merged mappings, which a loader copies already while it reads."""
    lines = ["x0: &x0 {a: b}"]
    lines += [f"x{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 10)}]}}" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("made", [bomb, merge_bomb])
async def test_an_alias_bomb_is_refused_before_it_is_built(tmp_path, caplog, made):
    (tmp_path / "bomb.yaml").write_text(made(12) + "\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{}]}\n")
    (tmp_path / "good.yaml").write_text(POD % "good")
    with caplog.at_level(logging.ERROR):
        assert await names(tmp_path) == ["good"]
    assert "excessive aliasing" in str(caplog.records[0].args["err"])


async def test_aliases_that_repeat_a_little_are_fine(tmp_path):
    (tmp_path / "pod.yaml").write_text(bomb(3) + "\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{}]}\n")
    assert await names(tmp_path) == ["a"]


async def test_what_is_no_regular_file_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "null.yaml").symlink_to("/dev/zero")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "good.yaml").write_text(POD % "good")
    async with asyncio.timeout(30):
        assert await names(tmp_path) == ["good"]
        assert await names(tmp_path / "fifo.yaml") == []


async def test_a_file_that_becomes_a_pipe_is_never_waited_for(tmp_path):
    """Between the look at a folder and the opening of a file, somebody may have replaced it."""
    os.mkfifo(tmp_path / "fifo.yaml")
    async with asyncio.timeout(30):
        with pytest.raises(ValueError, match="no regular file"):
            await asyncio.to_thread(manifest_text, tmp_path / "fifo.yaml")
