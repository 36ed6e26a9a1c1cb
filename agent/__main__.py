"""`python -m agent`."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the working directory, from which nothing may be imported

from agent.cli import main

main()
