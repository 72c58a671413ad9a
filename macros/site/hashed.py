"""Our own scripts and styles in a folder whose name is made from what they say: a browser may keep it for ever.

One name for all, at the depth of `assets/`: they import each other, and find the site's root, by relative addresses,
which stay as they are written. Fonts and the tools' data go along, so that a script never reads another edition's. What
a page links to (licenses, the logo) stays where it is. The styles are one file: each more is another way to the host
and back before the page is seen. Scripts go without the comments that say their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from posixpath import splitext

FOLDER = "assets"
SCRIPTS = frozenset({".mjs", ".js"})
KINDS = SCRIPTS | {".css", ".woff2"}
DATA = f"{FOLDER}/engine/", f"{FOLDER}/capitals/"
STYLES = f"{FOLDER}/styles.css"

# Of the theme: where its map lies, and a rule of every element for the moment in which colors change, for which a
# browser styles the whole page again twice, at its start too.
_LEFT_OUT = re.compile(r"/\*# sourceMappingURL=[^*]*\*/|\[data-md-color-switching\][^{}]*\{[^{}]*\}")


def is_moved(path: str) -> bool:
    """Whether a file of `docs/` is one of those."""
    return path.startswith(DATA) or path.startswith(f"{FOLDER}/") and splitext(path)[1] in KINDS


def is_written_here(path: str) -> bool:
    """Whether one of those is a script of ours that stands in `docs/`: not somebody else's, nor made by the build."""
    return splitext(path)[1] in SCRIPTS and not path.startswith((*DATA, f"{FOLDER}/vendor/"))


def one_sheet(sheets: Iterable[str]) -> str:
    """One sheet of several, in their order."""
    return "\n".join(_LEFT_OUT.sub("", sheet.removeprefix('@charset "UTF-8";')) for sheet in sheets)


def hashed_folder(files: Iterable[tuple[str, bytes]]) -> str:
    """The folder's name, from the paths and contents of all that is in it, in any order."""
    digest = sha256()
    for path, content in sorted(files):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return f"{FOLDER}-{digest.hexdigest()[:12]}"


def hashed_path(path: str, folder: str) -> str:
    """Where one of those files lies."""
    return f"{folder}/{path.removeprefix(f'{FOLDER}/')}"
