"""`python -m agent`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working directory: code that lies there is not ours

from agent.cli import main

main()
