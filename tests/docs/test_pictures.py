"""The pictures in docs/images/ show what the program shows today; `make pictures` makes them anew."""

import pytest

from tests.docs.pictures import DEMO, STATUS_PAGE, demo_outline, demo_svg, described_outline, page_outline, status_page

_SMALL_BYTES = 150_000


@pytest.mark.slow
def test_the_picture_of_the_demo_has_the_sections_of_the_demo(binaries):
    assert demo_outline(DEMO.read_text("utf-8")) == demo_outline(demo_svg(binaries / "kubectl"))


@pytest.mark.slow
def test_the_picture_of_the_page_has_the_parts_of_the_page(tmp_path):
    picture, outline = status_page(tmp_path)
    assert described_outline(STATUS_PAGE.read_bytes()) == outline
    assert described_outline(picture) == outline


def test_the_outlines_are_not_empty():
    assert {"Pods", "Conditions Ready", "Heartbeat lease"} <= set(demo_outline(DEMO.read_text("utf-8")))
    assert {"h2 Heartbeat", "dt MemoryPressure", "code cpu"} <= set(described_outline(STATUS_PAGE.read_bytes()))
    assert page_outline("<h2>Heartbeat</h2>") == ["h2 Heartbeat"]


@pytest.mark.parametrize("picture", [DEMO, STATUS_PAGE], ids=["demo", "page"])
def test_the_pictures_are_small_and_load_nothing(picture):
    content = picture.read_bytes()
    assert len(content) < _SMALL_BYTES
    assert b"url(http" not in content
    assert b"<script" not in content
