"""The live preview: at a save, only what depends on it is computed and rendered again.

MkDocs builds the whole site at each save. The preview follows that build through MkDocs' own events
(macros/site/mkdocs/hooks.py calls a method here before and after all other plugins' methods of an event).

    inputs.py     knows which files were saved since they were last taken in
    pages.py      hands each page what it gave last time, where nothing that went into it has changed
    elsewhere.py  lists what a page shows of the others
    modules.py    has an edited Python module imported anew, with those that import it
    server.py     has the open pages built first and the others in the background; shows what is wrong in the open tab
    heap.py       keeps the process's memory without gaps
    requests.py   says which requests are answered
    lines.py      makes one line of what a build logs and how it fails
    stand_ins.py  notes what is asked of MkDocs' files and Jinja's templates

The first build of `mkdocs serve`, which would end the server if it failed, is left empty: the real first one comes once
the server is there.
"""

from .pages import Preview

preview = Preview()
