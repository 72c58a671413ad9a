"""`python -m macros.site FOLDER`: the sources of the whole site, for another builder."""

import importlib.util
import sys

if __name__ == "__main__":
    if importlib.util.find_spec("yaml") is None:
        sys.exit("what builds the site is not installed; pip install 'every-parameter[site]'")
    from .sources import main

    sys.exit(main(sys.argv[1:]))
