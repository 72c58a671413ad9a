"""Files that editors leave next to those that they save: locks, copies, drafts. Builds ignore them."""

from __future__ import annotations

import re

# Hidden files are Emacs' locks (`.#page.md`, a dangling link), Vim's swap files and many drafts.
_OWN = re.compile(
    r"[.#].*|.*[~#]"
    r"|~\$.*"  # LibreOffice's and Word's locks
    r"|4913"  # Vim's test for write permission
    r"|.*\.sw[l-p]"  # Vim's swap files, if not hidden
    r"|.*___jb_(?:tmp|old|bak)___"  # JetBrains'
    r"|.*\.(?:tmp|bak|orig|rej)"
)


def is_an_editors(path: str) -> bool:
    """Whether a path below a folder of sources contains a name that is an editor's own, or hidden."""
    return any(_OWN.fullmatch(name) for name in path.replace("\\", "/").split("/"))
