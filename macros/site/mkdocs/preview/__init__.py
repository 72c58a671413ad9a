"""The live preview: at a save, only what depends on it is computed and rendered again.

MkDocs builds the whole site at each save. The preview follows that build through MkDocs' own events
(macros/site/mkdocs/hooks.py calls a method here before and after all other plugins' methods of an event).

    inputs.py     knows which files were saved since the last build
    pages.py      reuses a page's last results if none of their inputs has changed
    elsewhere.py  lists what other pages contribute to a page
    modules.py    reloads an edited Python module and those that import it
    server.py     builds the open pages first and the others in the background; shows errors in the open tab
    heap.py       keeps the process's memory compact
    requests.py   decides which requests are answered
    lines.py      reduces logs and failures of a build to one line each
    stand_ins.py  records lookups in MkDocs' files and Jinja's templates

The first build of `mkdocs serve` is left empty, since its failure would end the server; the real one runs once the
server has started.
"""

from .pages import Preview

preview = Preview()
