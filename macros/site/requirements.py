"""The packages that building the site needs in addition to the library; mkdocs.yml asks for them before MkDocs looks
for the theme."""

import os
from importlib.util import find_spec

SITE = "material", "mkdocs_macros", "py_mini_racer", "pygments", "pymdownx", "rcssmin", "watchdog", "yaml"
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # silences the theme's notice, which the README mentions
MEND = "pip install -c .ci/constraints.txt -e '.[site]'"

if missing := [name for name in SITE if find_spec(name) is None]:
    from click import ClickException

    raise ClickException(f"the site cannot be built without {', '.join(missing)}: {MEND}")
