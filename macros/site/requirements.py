"""The packages that building the site needs besides the library; mkdocs.yml asks for them before MkDocs looks for the
theme."""

from importlib.util import find_spec

SITE = "material", "mkdocs_macros", "py_mini_racer", "pymdownx", "rcssmin", "watchdog", "yaml"
MEND = "pip install -c .ci/constraints.txt -e '.[site]'"

if missing := [name for name in SITE if find_spec(name) is None]:
    from click import ClickException

    raise ClickException(f"the site cannot be built without {', '.join(missing)}: {MEND}")
