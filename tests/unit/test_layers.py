import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_downwards_only():
    linter = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
