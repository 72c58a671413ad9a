"""`python -m macros.site FOLDER`: the sources of the whole site, for another builder."""

import sys

from .sources import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
