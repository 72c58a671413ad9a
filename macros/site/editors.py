"""Files that editors leave next to those that they save: locks, copies, drafts. No build takes one for a page."""

from __future__ import annotations

import re

# Hidden ones are Emacs' locks (`.#page.md`, a link that leads nowhere), Vim's swap files and many a draft.
_OWN = re.compile(
    r"[.#].*|.*[~#]"
    r"|~\$.*"  # LibreOffice's and Word's locks
    r"|4913"  # by which Vim tries whether it may write
    r"|.*\.sw[l-p]"  # Vim's swap files, where they are not hidden
    r"|.*___jb_(?:tmp|old|bak)___"  # JetBrains'
    r"|.*\.(?:tmp|bak|orig|rej)"
)


def is_an_editors(path: str) -> bool:
    """Whether a path below a folder of sources contains a name that is an editor's own, or hidden."""
    return any(_OWN.fullmatch(name) for name in path.replace("\\", "/").split("/"))
