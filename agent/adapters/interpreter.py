"""The command line of every Python process that this program starts."""

import sys


def python_module(module: str, *arguments: str) -> list[str]:
    """The argv that runs one of our modules.

    Without -P, `python -m` puts the working directory first on sys.path, and code that lies there runs as us. Not -I:
    it hides the user's site-packages too, where `pip install --user` has put us.
    """
    return [sys.executable, "-P", "-m", module, *arguments]
