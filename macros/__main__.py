"""The command line from the repository: `python -m macros` is what `every-parameter` is where it is installed."""

import sys

from .cli.commands import main

if __name__ == "__main__":
    sys.exit(main())
