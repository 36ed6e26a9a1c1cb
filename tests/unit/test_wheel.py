"""What a user installs: the wheel, which needs more than our modules."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = {".html", ".json"}


@pytest.mark.slow
def test_the_wheel_has_the_data_of_the_package(tmp_path):
    pip = [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", f"--wheel-dir={tmp_path}", str(ROOT)]
    subprocess.run(pip, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "agent").rglob("*") if path.suffix in DATA}
    assert data >= {"agent/adapters/fleet/instance_types.json", "agent/adapters/server/status_page.html"}
    assert data <= set(zipfile.ZipFile(wheel).namelist())
