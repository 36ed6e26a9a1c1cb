"""The image of fake-kubelet, built from the Dockerfile on a base that is made here.

`python -m tests.container.image` makes the base if needed.
"""

import os
import sys
from pathlib import Path

from tests.container.debian import tarball
from tests.container.engine import Engine, NoEngine

ROOT = Path(__file__).parents[2]
BASE = "docker.io/library/python:3.13-slim"
IMAGE = "localhost/fake-kubelet"
_PACKAGES = ("ca-certificates", "netbase", "python3", "python3-pip", "python3-venv", "tzdata")
# As in the official image: `python`, and a pip that may install.
_HOOK = 'rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED; ln -s ../../bin/python3 "$1"/usr/local/bin/python'


def build_image(engine: Engine) -> str:
    """Build it, after the base where that is missing."""
    make_base(engine)
    image = engine.build(ROOT, IMAGE)
    # Each change of ours leaves an image behind; no run lasts a week.
    engine.remove(*(older for older in engine.names(IMAGE, "until=168h") if older != image))
    return image


def make_base(engine: Engine) -> None:
    """A Debian with Python under the name that the Dockerfile starts from; made once and kept."""
    with engine.alone():
        if not engine.has(BASE):
            path = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
            engine.import_tar(tarball("trixie", _PACKAGES, hook=_HOOK), BASE, f"ENV {path}", 'CMD ["python3"]')


def main() -> int:
    """Make the base before the tests, which have little time; say why there is none, and only CI insists."""
    try:
        make_base(Engine.opened())
    except NoEngine as reason:
        print(f"no containers to test with: {reason}", file=sys.stderr)
        return 1 if os.environ.get("CI") else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
