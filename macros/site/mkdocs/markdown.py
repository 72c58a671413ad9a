"""The settings of the Markdown extensions under MkDocs: the place of the glossary, and the handling of a wrong formula.

mkdocs.yml names the extensions of the installed package, which every builder finds. Here they are replaced by those of
this module's package, which the live preview reloads after an edit.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

from markupsafe import escape
from mkdocs.exceptions import PluginError

from ...cache.memory import depends_on
from ...engine.errors import Problem
from .. import page_checks, page_errors
from ..extensions.glossary import Entry, entries, tooltips
from ..extensions.shown_text import Shown, ShownText
from ..page_checks import Mistake, front_matter
from ..page_checks.front_matter import KEYS, TEXT, theme_mistake
from ..page_syntax import front_matter_mend, without_front_matter
from .preview import preview

log = logging.getLogger("mkdocs.macros.markdown")

INSTALLED = "every_parameter.site.extensions."
EXTENSIONS = f"{__name__.rpartition('.mkdocs.')[0]}.extensions."

TEXTS = {key for key, kind in KEYS.items() if kind is TEXT}
LISTS = {key for key, kind in KEYS.items() if kind is front_matter.TEXTS}
WRITTEN = {"title", "description", "author"}  # metadata that authors write as text and themes put into a page's head

source = ""  # of the current page
lines: list[str] = []  # of its source file
glossary: list[Entry] = []  # of the current build
checked: list[page_checks.Source] = []  # the page being converted, if a person wrote it
excluded: set[str] = set()  # files of docs/ that are not published
errors: list[str] = []  # errors of pages, in a build: it ends when all of them are reported
REFERENCES = "autorefs", "mkdocstrings"  # plugins that define links of their own


def on_config(config):
    config.markdown_extensions = [own(name) for name in config.markdown_extensions]
    config.mdx_configs = {own(name): options for name, options in config.mdx_configs.items()}
    options = config.mdx_configs.get(f"{EXTENSIONS}glossary", {})
    if "file" in options:  # read once per build
        glossary[:] = entries(Path(config.config_file_path).parent / options.pop("file"))
        options["glossary"] = tooltips(glossary)
    config.mdx_configs[f"{EXTENSIONS}math"] = {"on_problem": tell}
    extensions: list[Any] = config.markdown_extensions
    extensions.append(ShownText(look))
    checked.clear()
    errors.clear()
    page_errors.told.clear()
    return config


def own(name: str) -> str:
    return EXTENSIONS + name.removeprefix(INSTALLED) if name.startswith(INSTALLED) else name


def tell(problem: Problem) -> None:
    """Report a wrong formula: a preview shows the line in its place, and a build ends once all pages are read, or
    immediately for a generated page, which would be cached with it."""
    if preview.refuses and not checked:
        raise PluginError(str(problem.at(place_in_docs(problem.what)))) from None
    tell_one(problem.at(place_in_docs(problem.what)), logging.ERROR)


def tell_one(problem: Problem, level: int) -> None:
    """Report an author's mistake in the same words in the preview and in a build."""
    if level >= logging.ERROR:
        errors.append(str(problem))
    log.log(level, "%s", problem, extra={"is_of_page": True})


def tell_mistake(mistake: Mistake) -> None:
    tell_one(Problem(mistake.what, mistake.mend, f"docs/{source}:{mistake.line}"), mistake.level)


def look(shown: Shown) -> None:
    """Look for leftover markup in Markdown's own tree of a page."""
    if checked:
        for mistake in page_checks.of_shown(checked[0], shown, source, excluded.__contains__):
            tell_mistake(mistake)


def refuse_mistakes(config, files) -> None:
    """End a build of pages with mistakes, after MkDocs has reported on their links. Raises PluginError."""
    if told := [*errors, *page_errors.told]:
        for page in (file.page for file in files.documentation_pages()):
            if page is not None and page.present_anchor_ids is not None:
                page.validate_anchor_links(files=files, log_level=config.validation.links.anchors)
        many = f"{len(told)} mistakes" if told[1:] else "a mistake"
        raise PluginError(f"{many} on the pages, told above: nothing was built")


def place_in_docs(what: str) -> str:
    """The page, and the first of its lines with the formula that a problem names between dollar signs."""
    formula = what[what.find("$") + 1 : what.rfind("$")].split("\n")[0]
    number = next((n for n, line in enumerate(lines, 1) if formula and formula in " ".join(line.split())), None)
    return f"docs/{source}" + (f":{number}" if number else "")


def on_files(files, config):
    """Report a page in another encoding with its line, and read it as well as possible."""
    excluded.clear()
    excluded.update(file.src_uri for file in files if file.inclusion.is_excluded())
    for file in files.documentation_pages():
        if file.generated_by is None and file.abs_src_path and (wrong := not_text(file.abs_src_path)):
            line, found, text = wrong
            problem = Problem(f"the page is not UTF-8: {found} is no character", "save it as UTF-8")
            tell_one(problem.at(f"docs/{file.src_uri}:{line}"), logging.ERROR)
            file.content_string = text


def not_text(path: str) -> tuple[int, str, str] | None:
    """The line and the first byte of a file that is not UTF-8, and its text as well as it can be read."""
    try:
        stat = os.stat(path)
        return _not_text(path, stat.st_mtime_ns, stat.st_size)
    except OSError:  # MkDocs tells
        return None


def _not_text(path: str, written: int, size: int) -> tuple[int, str, str] | None:
    content = Path(path).read_bytes()
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        begins_utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = content.decode("utf-16" if begins_utf_16 else "latin-1", "replace")
        return content.count(b"\n", 0, error.start) + 1, f"0x{content[error.start]:02x}", text
    return None


def on_page_markdown_early(markdown, page, config, files):
    """Report metadata that MkDocs would print as text; under live preview, also above the page's text. Mistakes
    (`page_checks`) do not end the build here, since further ones may be reported."""
    for key, value in readable(page.meta).items():
        page.meta[key] = value
    if page.meta or not (mend := front_matter_mend(page.file.content_string)):
        return None
    problem = Problem(mend.what, mend.how, f"docs/{page.file.src_uri}:{mend.line}")
    depends_on("error")
    tell_one(problem, logging.ERROR)
    return f"    {problem}\n\n{without_front_matter(page.file.content_string)}"


def on_page_markdown(markdown, page, config, files):
    global source
    source, lines[:] = page.file.src_uri, page.file.content_string.splitlines()
    checked.clear()
    if page.file.generated_by is None:  # one that somebody wrote
        check_page(page, config, files)
    for key in WRITTEN & page.meta.keys():
        page.meta[key] = escape(page.meta[key])  # converted to HTML once


def readable(said: Mapping[str, Any]) -> dict[str, Any]:
    """What MkDocs and the theme can read in place of metadata of another kind."""
    texts: dict[str, Any] = {key: str(said[key]) for key in TEXTS & said.keys() if not isinstance(said[key], str)}
    texts |= {key: [] for key in LISTS & said.keys() if not KEYS[key].fits(said[key])}
    asked = said.get("search", {})
    is_right = isinstance(asked, dict) and isinstance(asked.get("boost", 1), int | float)
    return texts if is_right else {**texts, "search": {}}


def check_page(page, config, files) -> None:
    checked[:] = [now] = [page_checks.Source(page.file.content_string)]
    found = page_checks.of_source(now, source)
    found += page_checks.of_addresses(now, source, page.url, lambda path: files.get_file_from_path(path) is not None)
    for key in {"template", "icon"} & page.meta.keys():
        if wrong := theme_mistake(now, key, list(map(Path, config.theme.dirs))):
            found.append(wrong)
            del page.meta[key]
    for mistake in found:
        tell_mistake(mistake)


def title_text(title: object) -> str:
    """A title or a description as text: MkDocs and its themes treat them as HTML."""
    return unescape(str(title or ""))


def on_page_content(html, page, config, files):
    """Drop the expanded Markdown, which is as large as the HTML and no longer needed."""
    page.markdown = ""
    checked.clear()


def on_env(env, config, files):
    """All pages have been read, and none has been written yet."""
    if preview.refuses:
        refuse_mistakes(config, files)
