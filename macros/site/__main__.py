"""The site for other builders: writes their sources, and publishes their result.

python -m macros.site FOLDER                      from the repository
python -m macros.site --finish SOURCES FOLDER     after the builder has run in the folder of the sources
"""

import importlib.util
import sys

if __name__ == "__main__":
    if importlib.util.find_spec("yaml") is None:
        sys.exit("what builds the site is not installed; pip install 'every-parameter[site]'")
    from .other_engines.command import main

    sys.exit(main(sys.argv[1:]))
