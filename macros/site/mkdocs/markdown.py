"""The settings of the Markdown extensions under MkDocs: the place of the glossary, and the handling of a wrong formula.

mkdocs.yml names the extensions of the installed package, the only ones that every builder finds. From here on they are
those of this module's package: under live preview the one that is imported again after an edit.
"""

from __future__ import annotations

import logging
from html import unescape
from pathlib import Path

from markupsafe import escape
from mkdocs.exceptions import PluginError

from ...cache.memory import depends_on
from ...engine.errors import Problem
from ..extensions.glossary import Entry, entries, tooltips
from ..page_syntax import front_matter_mend, without_front_matter

log = logging.getLogger("mkdocs.macros.markdown")

INSTALLED = "every_parameter.site.extensions."
EXTENSIONS = f"{__name__.rpartition('.mkdocs.')[0]}.extensions."

WRITTEN = {"title", "description", "author"}  # what authors write as text above a page, and themes into its head

source = ""  # of the page that is being built
lines: list[str] = []  # of its file, as it was written
glossary: list[Entry] = []  # of this build


def on_config(config):
    config.markdown_extensions = [own(name) for name in config.markdown_extensions]
    config.mdx_configs = {own(name): options for name, options in config.mdx_configs.items()}
    options = config.mdx_configs.get(f"{EXTENSIONS}glossary", {})
    if "file" in options:  # read once, not for each page
        glossary[:] = entries(Path(config.config_file_path).parent / options.pop("file"))
        options["glossary"] = tooltips(glossary)
    fails = "macros" not in config.plugins or config.plugins["macros"].config["on_error_fail"]
    config.mdx_configs[f"{EXTENSIONS}math"] = {"on_problem": refuse if fails else tell}
    return config


def own(name: str) -> str:
    return EXTENSIONS + name.removeprefix(INSTALLED) if name.startswith(INSTALLED) else name


def refuse(problem) -> None:
    raise PluginError(str(problem.at(place_in_docs(problem.what)))) from None


def tell(problem) -> None:
    """Under live preview, show the line instead of the formula."""
    log.error(problem.at(place_in_docs(problem.what)))


def place_in_docs(what: str) -> str:
    """The page, and the first of its lines with the formula that a problem names between dollar signs."""
    formula = what[what.find("$") + 1 : what.rfind("$")].split("\n")[0]
    number = next((n for n, line in enumerate(lines, 1) if formula and formula in " ".join(line.split())), None)
    return f"docs/{source}" + (f":{number}" if number else "")


def on_page_markdown_early(markdown, page, config, files):
    """Refuse metadata that MkDocs would print as text; under live preview, tell them above the page's text."""
    if page.meta or not (mend := front_matter_mend(page.file.content_string)):
        return None
    problem = Problem(mend.what, mend.how, f"docs/{page.file.src_uri}:{mend.line}")
    if not config.plugins["macros"].config["on_error_fail"]:
        depends_on("error")
        log.error(problem)
        return f"    {problem}\n\n{without_front_matter(page.file.content_string)}"
    raise PluginError(str(problem))


def on_page_markdown(markdown, page, config, files):
    global source
    source, lines[:] = page.file.src_uri, page.file.content_string.splitlines()
    for key in WRITTEN & page.meta.keys():
        page.meta[key] = escape(page.meta[key])  # to HTML once, however often


def title_text(title: object) -> str:
    """A title or a description as text: MkDocs and its themes treat them as HTML."""
    return unescape(str(title or ""))


def on_page_content(html, page, config, files):
    """Drop the Markdown after the macros: it is as large as the HTML, and nothing reads it again."""
    page.markdown = ""
