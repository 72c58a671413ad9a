"""The macros on another site: its options, its own presets, and the styles and scripts for its pages.

A site that names `modules: [every_parameter]` below the macros plugin gets the rest from here: its `mkdocs.yml` needs
nothing else. Our own site has the styles in its `docs/`, names them itself, and does not use this module.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ...catalogue import page_paths, presets
from ...engine.errors import Problem, nearest, shorten
from .. import links, model_pages, tool_files
from ..editors import is_an_editors

PLACE = "extra.every_parameter"
EXTENSION = f"{__name__.rpartition('.mkdocs.')[0]}.extensions.large_blocks"

# Styles and scripts, in the installed package or in the repository; the site's folder for them, one level below its
# root as the scripts expect; those only for our own site; those that a page names.
_PACKAGE = Path(__file__).parent.parent.parent
ASSETS = next(path for path in (_PACKAGE / "assets", _PACKAGE.parent / "docs" / "assets") if path.is_dir())
FOLDER = "every-parameter"
OF_OUR_SITE = {"site.css", "logo.svg", "search", "tips.mjs", "explained.mjs"}
STYLES = "components.css"
OF_SMALL = {"capitals", "station", "attention"}  # the tools that load the small model, and no list of models
OF_VOCABULARIES = {"pieces"}
OF_NO_MODELS = OF_SMALL | OF_VOCABULARIES | {"run", "recorded", "stepped"}
SCRIPTS = "site.mjs", "tools.mjs", "tables.mjs"

# The styles are written for Material's root font size; other themes use the browser's.
_REM = re.compile(r"(?<![\w.])(\d*\.?\d+)rem\b")
LARGER = 1.25

_TOOL = re.compile(r'class="ep-tool" data-tool="([^"]*)"')
_tools: set[str] = set()  # on the pages of this build


class Options(NamedTuple):
    """The options below `extra.every_parameter`."""

    presets: Path | None = None  # the folder with its own presets
    prefix: str = ""  # prefix of every macro's name


def start(conf: Any) -> Options:
    """Before a build: read the options and the site's presets, and add to its configuration what the macros need."""
    from mkdocs.config.config_options import ExtraScript  # imported here, since our own site does without it
    from mkdocs.exceptions import PluginError

    file = Path(conf["config_file_path"])
    try:
        options = read_options(conf["extra"].get("every_parameter"), file.parent)
    except Problem as problem:
        raise PluginError(str(problem.at(file.name))) from None
    wrong = own_presets(options.presets)
    if wrong:
        raise PluginError("\n".join(map(str, wrong)))
    if options.presets:
        conf["watch"].append(str(options.presets))
    if not any(str(name).endswith(".extensions.large_blocks") for name in conf["markdown_extensions"]):
        conf["markdown_extensions"].append(EXTENSION)
    conf["extra_css"].insert(0, f"{FOLDER}/{STYLES}")  # before the site's own styles, which may override them
    conf["extra_javascript"] += [ExtraScript().run_validation(f"{FOLDER}/{name}") for name in SCRIPTS]
    _tools.clear()
    return options


def read_options(said: object, root: Path) -> Options:
    """The options, from the value of `extra.every_parameter`; folders are relative to `root`. Raises `Problem`."""
    if said is None:
        return Options()
    if not isinstance(said, dict):
        raise Problem(f"{PLACE} = {shorten(said)}: expected options", "write `presets:` or `prefix:` below it")
    for name in said:
        if name not in Options._fields:
            mend = nearest(name, Options._fields, f"known ones: {', '.join(Options._fields)}")
            raise Problem(f"{PLACE}.{name}: unknown option", mend)
    prefix, named = said.get("prefix") or "", said.get("presets")
    if not isinstance(prefix, str) or prefix and not prefix.isidentifier():
        raise Problem(
            f"{PLACE}.prefix = {shorten(prefix)}: a name cannot begin so", "use letters and underscores, such as ep_"
        )
    if named is None:
        return Options(None, prefix)
    folder = root / named if isinstance(named, str) else None
    if folder is None or not os.path.isdir(folder):
        raise Problem(
            f"{PLACE}.presets = {shorten(named)}: no such folder", "name one of TOML files, from where mkdocs.yml is"
        )
    if not any(folder.rglob("*.toml")):
        raise Problem(f"{PLACE}.presets = {shorten(named)}: holds no preset", "write one, or leave the option out")
    return Options(folder.resolve(), prefix)


def own_presets(folder: Path | None) -> list[Problem]:
    """Add a site's presets to ours; returns the problems of its presets."""
    presets.read_also(folder)
    try:
        slugs = [slug for slug, path in presets.paths().items() if folder and path.is_relative_to(folder)]
    except Problem as problem:
        return [problem]
    return [problem for slug in slugs if (problem := model_pages.problem(slug))]


def note_tools(markdown: str) -> None:
    """Record whether a page needs the compiled engine, or the small model."""
    _tools.update(_TOOL.findall(markdown))


def write_files(conf: Any, pages: Any) -> None:
    """After a build: writes the styles and scripts into the site's folder, and the data of its tools."""
    target = Path(conf["site_dir"]) / FOLDER
    for path in ASSETS.rglob("*"):
        name = path.relative_to(ASSETS)
        is_ours = name.suffix != ".py" and not is_an_editors(name.as_posix())
        if path.is_file() and is_ours and name.parts[0] not in OF_OUR_SITE | {"__pycache__"}:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    if conf["theme"].name != "material":
        styles = (target / STYLES).read_text("utf-8")
        (target / STYLES).write_text(scaled_styles(styles, LARGER), "utf-8")

    def address(slug: str) -> str:
        """The URL of a model's page, relative to the site's root; empty if the site has no such page."""
        source = page_paths.model_page(slug)
        is_there = pages.get_file_from_path(source) is not None
        return links.page_address(source, conf["use_directory_urls"]) if is_there else ""

    for name, content in loaded_by(_tools, address):
        path = Path(conf["site_dir"]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def loaded_by(tools: set[str], address: Callable[[str], str]) -> Iterable[tuple[str, bytes]]:
    """The files that tools load, by their paths below the site's root: the compiled engine, and the small model or the
    data of the other tools."""
    for file in tool_files.tool_files(address) if tools else ():
        of = {tool_files.SMALL: OF_SMALL, tool_files.VOCABULARIES: OF_VOCABULARIES}.get(file.path.rpartition("/")[0])
        if file.path.endswith(".mjs") or (tools - OF_NO_MODELS if of is None else tools & of):
            content = file.content
            yield (
                f"{FOLDER}/{file.path.removeprefix('assets/')}",
                (content.encode() if isinstance(content, str) else content),
            )


def scaled_styles(styles: str, factor: float) -> str:
    """Styles with every length that depends on the root element's size multiplied by this factor."""
    return _REM.sub(lambda length: f"{float(length[1]) * factor:.4g}rem", styles)
