"""Old URLs of pages: each redirects to the page that replaced it, according to `moved.toml`.

Plain HTML, as any host serves it: a page at the old URL redirects its readers, keeping the settings and the anchor of
their link, and names the new one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator
from functools import partial
from html import escape
from pathlib import Path

from ..cache.memory import memoized
from ..engine.errors import Problem, nearest
from ..engine.files import place
from .content_security import with_policy
from .links import page_address, relative_link
from .model_pages import Generated

TABLE = Path(__file__).with_name("moved.toml")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="canonical" href="{link}">
<script>
const to = new URL(document.querySelector("link").href)
to.search = location.search
to.hash = location.hash || to.hash
location.replace(to)
</script>
<noscript><meta http-equiv="refresh" content="0; url={link}"></noscript>
<title>This page has moved</title>
</head>
<body>
<main>
<h1>This page has moved</h1>
<p>It is now at <a href="{link}">{link}</a>.</p>
</main>
</body>
</html>
"""


@memoized
def moved() -> dict[str, str]:
    """The old path of each page, relative to `docs/`, with the path that it redirects to. Raises `Problem`."""
    try:
        said = tomllib.loads(TABLE.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Problem(f"the table of moved pages cannot be read: {error}", "correct the line", place(TABLE)) from None
    for old, new in said.items():
        if not isinstance(new, str) or not old.endswith(".md") or old.startswith(("/", ".")):
            raise _wrong(old, f"{old} = {new!r}: expected the paths of two pages", 'write "old.md" = "new.md"')
    return said


def check(pages: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the table for a site with these pages: each line must lead to one of them, from a URL that is
    not one."""
    table = moved()
    for old, target in table.items():
        new = target.partition("#")[0]
        if old in pages:
            yield _wrong(old, f"{old} is a page: its address leads to itself", "delete the line")
        elif new in table:
            yield _wrong(old, f"{new} has moved, too", f'write "{table[new]}"')
        elif new not in pages:
            yield _wrong(old, f"{new}: there is no such page", nearest(new, pages, "write the path of a page"))


def pages(present: Collection[str], has_folders: bool = True) -> list[Generated]:
    """A page for each old URL whose new page is present."""
    return [
        Generated(_file(old, has_folders), partial(page, old, new, has_folders))
        for old, new in moved().items()
        if new.partition("#")[0] in present and old not in present
    ]


def page(old: str, new: str, has_folders: bool) -> str:
    path, _, anchor = new.partition("#")
    link = relative_link(path, old, has_folders) + (f"#{anchor}" if anchor else "")
    return with_policy(_PAGE.format(link=escape(link)))


def guess(gone: str, pages: Collection[str]) -> str:
    """The line of the table that a page needs that is gone: to one with the same name, or with nearly the same path."""
    same = [path for path in pages if path.rpartition("/")[2] == gone.rpartition("/")[2] != "index.md"]
    found = same[0] if len(same) == 1 else nearest(gone, pages).removeprefix('did you mean "').removesuffix('"?')
    return f'"{gone}" = "{found or "…"}"'


def _file(old: str, has_folders: bool) -> str:
    address = page_address(old, has_folders)
    return f"{address}index.html" if address.endswith("/") or not address else address


def _wrong(old: str, what: str, mend: str) -> Problem:
    lines = TABLE.read_text("utf-8-sig").splitlines()
    number = next((n for n, line in enumerate(lines, 1) if line.startswith((f'"{old}"', f"'{old}'"))), None)
    return Problem(what, mend, f"{place(TABLE)}:{number}" if number else place(TABLE))
