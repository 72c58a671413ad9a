"""Connects `model_pages` and `tool_files` to MkDocs: its navigation, its objects for files that are not in `docs/`."""

from __future__ import annotations

import ast
import gc
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, cast

from mkdocs.exceptions import PluginError
from mkdocs.structure import StructureItem
from mkdocs.structure.files import File, InclusionLevel
from mkdocs.structure.nav import Section
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, TableOfContents

from ...cache import disk, memory, second_process
from ...catalogue import page_paths, preset_schema, presets
from ...catalogue.names import check_path
from ...engine.errors import Problem
from ...engine.files import write
from .. import data_files, model_pages, moved, page_errors, tool_files
from ..content_security import checked_hub
from ..editors import is_an_editors
from ..page_frames import Frames, Rendered
from ..search import records
from .markdown import glossary
from .preview import preview
from .preview.inputs import Inputs
from .preview.pages import OURS

log = logging.getLogger("mkdocs.macros.site")

KEPT = ".cache/views.sqlite"
SCHEMA = ".cache/preset.schema.json"


class Generated(File):
    """A file whose content is computed when MkDocs reads or writes it, and therefore never for a skipped page."""

    make: Callable[[], str | bytes]

    @cached_property
    def _content(self) -> str | bytes:  # pyright: ignore[reportIncompatibleVariableOverride]
        preview.go_on()
        made = self.make()
        if preview.serving:
            preview.count()
        return made

    def copy_file(self, dirty: bool = False) -> None:
        """Once written, its content is dropped."""
        super().copy_file(dirty)
        vars(self).pop("_content", None)


frames = [Frames()]  # of this build
AT_ONCE = 20  # models that are released together
counted: list[presets.Model] = []  # whose page was built since then
whole: list[tuple[Section, list[StructureItem]]] = []  # the whole navigation, while a page shows part of it


def on_config(config):
    """Add the families below "Models" in the navigation, and open the cached views of earlier builds."""
    config.extra["hub"] = checked_hub(config.extra.get("hub"))
    inputs = preview.inputs if preview.serving else Inputs(config)
    if preview.serving:
        memory.pack_long_texts()
        memory.limit_large_results()
    elif disk.is_asked():
        inputs.begin()
    if not (preview.serving and preview.is_complete):  # cached values are loaded then
        now = None if preview.serving and preview.is_edited else inputs.read
        database = Path(config.config_file_path).parent / KEPT
        disk.open_store(database, inputs.states, now, preview.serving, config.use_directory_urls)
    if not preview.serving:
        second_process.start({tool_files.ENGINE: tool_files.compiled})  # while this process counts the models
    if config.nav:
        config.nav = model_pages.with_families(config.nav, size())
    return config


def size() -> Callable[[str], int] | None:
    """The sort key of models released on the same day. When a preview builds only the open pages, it counts no model:
    it uses known sizes, and the build of all pages corrects the rest."""
    if not preview.serving:
        return None
    if preview.first is None:
        for slug in presets.paths():
            preview.go_on()
            preview.sizes[slug] = model_pages.total(slug)
    return lambda slug: preview.sizes.get(slug, 0)


def on_files(files, config):
    """Add the generated pages. A wrong preset ends the build; under live preview its page shows the error."""
    put_back()  # if a preview's build was interrupted in the middle of a page
    frames[:] = [Frames(word for entry in glossary for word in entry.tips)]
    for file in list(files):
        if is_an_editors(file.src_uri) and Path(file.src_dir or "").is_relative_to(config.docs_dir):
            files.remove(file)  # of a page, or of a template in a folder of `docs/`
        elif file.src_dir == config.docs_dir:  # otherwise it would be the theme’s
            try:
                check_path(file.src_uri)
            except Problem as problem:
                raise PluginError(str(problem.at("docs"))) from None
    generated = [file_of(one, config) for one in model_pages.pages(size())]
    is_whole = preview.first is None
    tell_problems(presets.paths() if is_whole else preview.saved_presets(), preview.refuses)
    if is_whole:
        preview.others = [file_of(one, config) for one in (*model_pages.data(), *tool_files.tool_files())]
        present = {file.src_uri for file in (*files.documentation_pages(), *generated)}
        for problem in moved.check(present):
            log.warning(problem)
        preview.others += [file_of(one, config) for one in moved.pages(present, config.use_directory_urls)]
    by_hand = {file.src_uri for file in files}
    for file in (*generated, *preview.others):  # in a build of the open pages, those of the last full build
        if file.src_uri not in by_hand:  # otherwise it would stay
            files.append(file)
    return files


def file_of(one: model_pages.Generated, config) -> Generated:
    file = Generated(one.path, None, config.site_dir, config.use_directory_urls)
    file.inclusion, file.generated_by = InclusionLevel.NOT_IN_NAV, OURS
    file.make = partial(second_process.computed, one.path, one.make)
    file.edit_uri = one.edit  # pyright: ignore[reportAttributeAccessIssue]  a cached property, to be set
    return file


def on_nav(nav, config, files):
    """Set attributes that the theme looks up on every navigation entry but none has: a failed lookup takes Jinja ten
    times as long, for every entry on every page."""
    for entry in entries(nav.items):
        for name in ("typeset", "encrypted", "pages", *(() if isinstance(entry, Page) else ("meta",))):
            setattr(entry, name, None)
    within_families(nav.items)


def within_families(items: Iterable[StructureItem]) -> None:
    """The previous and next pages: a family's models link to each other and to the list of all, and hand-written pages
    skip the families.
    """
    for models in items:
        family_entries = [one for one in models.children or () if one.children]  # pyright: ignore
        if not family_entries or not models.children[0].is_page:  # pyright: ignore
            continue
        written = [one for one in models.children if one.is_page]  # pyright: ignore
        behind = family_entries[-1].children[-1].next_page
        for family in family_entries:
            family.children[0].previous_page = family.children[-1].next_page = written[0]
        written[-1].next_page = behind
        if behind:
            behind.previous_page = written[-1]


def entries(items: Iterable[StructureItem]) -> Iterator[StructureItem]:
    for item in items:
        yield item
        yield from entries(item.children or ())  # pyright: ignore[reportAttributeAccessIssue]


def on_page_markdown_early(markdown, page, config, files):
    """A generated page is cached as a whole, after macros and Markdown; a preview caches each step."""
    if preview.serving:
        return None
    if not isinstance(page.file, Generated):
        return written_out(markdown, page, config)
    said, _, page.content = second_process.computed(
        task_of(page.file), lambda: kept_page(markdown, page, config, files)
    ).partition("\n")
    contents, title, anchors, links = json.loads(said)
    page._title_from_render, page.present_anchor_ids = title, set(anchors)
    page.toc = TableOfContents([_anchor(*one) for one in contents])
    page.links_to_anchors = {files.get_file_from_path(path): named for path, named in links.items()}
    page.render = lambda config, files: None
    if not JINJA.search(page.title):
        pass_by(page)
    return ""


def written_out(markdown: str, page, config) -> str | None:
    """A page with its macros called without Jinja, whose compiler takes longer than most macros; only if it has no
    other Jinja syntax."""
    if page.meta.keys() & RENDERING or JINJA.search(page.title or ""):
        return None
    written = with_macros_called(config.plugins["macros"], markdown, page)
    if written is not None:
        pass_by(page)
    return written


def pass_by(page) -> None:
    """Keep the plugin from compiling the page with Jinja, which it would do even for an empty page, until
    `on_page_content`."""
    page.meta["render_macros"] = False
    page.is_written_out = True


def kept_page(markdown: str, page, config, files) -> str:
    """A generated page's HTML, preceded by a line with the attributes that rendering sets."""

    def made() -> str:
        plugin = config.plugins["macros"]
        written = with_macros_called(plugin, markdown, page)
        if written is None:
            written = plugin.on_page_markdown(markdown, page=page, config=config, files=files)
            if preview.refuses and page_errors.told:  # a cached page has no error in it
                raise PluginError(page_errors.told[-1])
        *said, html = frames[-1].render(written, page.file.src_uri, rendered)
        return f"{json.dumps(said)}\n{html}"  # as one text, since most of it is the HTML

    def rendered(markdown: str) -> Rendered:
        page.markdown = markdown
        page.render(config, files)
        links = {file.src_uri: anchors for file, anchors in (page.links_to_anchors or {}).items()}
        contents = [_entry(one) for one in page.toc]
        return Rendered(contents, page._title_from_render, sorted(page.present_anchor_ids), links, page.content)

    return disk.get_or_compute_whole("page", (page.file.src_uri, markdown), made)


def on_nav_late(nav, config, files):
    """The generated pages as tasks, last ones first, each with the data of its model, since both need the same
    counts."""
    data = {file.src_uri: file for file in files if not file.is_documentation_page()}
    tasks: list[tuple[str, Callable[[], str | bytes]]] = []
    for page in reversed([file for file in files.documentation_pages() if isinstance(file, Generated)]):
        tasks += [*made_later([page]), (task_of(page), partial(read_page, page, config, files))]
        slug = Path(page.src_uri).stem
        tasks += made_later([data.pop(of_model(slug), None) for of_model in data_files.OF_MODEL])
    second_process.start(dict([*tasks, *made_later(reversed(data.values()))]))


def made_later(files: Iterable[File | None]) -> list[tuple[str, Callable[[], str | bytes]]]:
    """The generated files without content yet, as tasks."""
    return [(one.src_uri, one.make) for one in files if isinstance(one, Generated) and "_content" not in vars(one)]


def task_of(file: File) -> str:
    return f"page {file.src_uri}"


def read_page(file: File, config, files) -> str:
    """Like `kept_page`, for a page that MkDocs has not read."""
    page = file.page or Page(None, file, config)
    page.read_source(config)
    return kept_page(page.markdown or "", page, config, files)


RENDERING = {"render_macros", "ignore_macros"}  # metadata that controls the plugin
# A call as `model_pages.macro_call` writes it, or text in a raw block.
CALL = re.compile(r"(?<!\{)\{\{ (\w+)\((.*?)\) \}\}(?!\})|\{% raw %\}((?s:.*?))\{% endraw %\}")
NAME = re.compile(r'"([^"\\]*)"(?:, (.*))?')  # a model or a family, and the arguments after it
JINJA = re.compile(r"\{[{%#]")


def with_macros_called(plugin, markdown: str, page) -> str | None:
    """The Markdown of a page with its macros called, as Jinja would call them: all arguments are literals, so no
    template is compiled for the page. Raw blocks stay unchanged. None for a page with other Jinja, and if a call is
    wrong."""
    pieces = CALL.split(markdown.removesuffix("\n"))
    if any(map(JINJA.search, pieces[::4])):
        return None
    plugin._page, plugin.variables["page"], plugin._markdown = page, page, markdown
    for function in plugin.pre_macro_functions:
        function(plugin)
    try:
        for n in range(1, len(pieces), 4):
            name, given, shown = pieces[n : n + 3]
            if shown is None:
                args, named = arguments(given)
                shown = str(plugin.env.finalize(plugin.macros[name](*args, **named)))
            pieces[n : n + 3] = "", "", shown
    except Exception:  # Jinja will raise it too, with its line
        return None
    return "".join(pieces)


def arguments(written: str) -> tuple[list, dict[str, Any]]:
    """The arguments of a call, all of them literals."""
    if first := NAME.fullmatch(written):
        others, named = literals(first[2] or "")
        return [first[1], *others], named
    return literals(written)


@cache
def literals(written: str) -> tuple[list, dict[str, Any]]:
    """`arguments`, cached, since many pages have equal arguments."""
    call = cast(ast.Call, ast.parse(f"f({written})", mode="eval").body)
    named = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    if len(named) < len(call.keywords):
        raise SyntaxError("keyword argument repeated")
    return [*map(ast.literal_eval, call.args)], named


def _entry(one: AnchorLink) -> list:
    """An entry of a page's table of contents, for JSON."""
    return [one.title, one.id, one.level, [_entry(child) for child in one.children]]


def _anchor(title: str, id: str, level: int, children: list) -> AnchorLink:
    entry = AnchorLink(title, id, level)
    entry.children = [_anchor(*child) for child in children]
    return entry


def tell_problems(slugs: Iterable[str], refuses: bool) -> None:
    """End a build with wrong presets, or report them."""
    wrong: list[Problem] = []
    for slug in slugs:
        preview.go_on()
        if problem := model_pages.problem(slug):
            wrong.append(problem)
    if wrong and refuses:
        raise PluginError("\n".join(map(str, wrong)))
    for problem in wrong:
        log.error(problem)


def on_page_context(context, page, config, nav):
    """A page has only its own family in the navigation; the page of all models has all of them."""
    if page.file.src_uri.startswith(f"{page_paths.MODELS}/") and len(page.ancestors) > 1:
        family, models = page.ancestors[-2:]
        whole.append((models, models.children))
        models.children = [models.children[0], family]


def on_page_content(html, page, config, files):
    """Remove metadata meant for the plugin, and release the page's counts, unless somebody waits or a second process
    counts the rest."""
    if vars(page).pop("is_written_out", False):
        del page.meta["render_macros"]
    if preview.first is None and not second_process.is_under_way():
        release_after(page.file)


def release_after(file: File) -> None:
    """Release models after their pages: a hand-written page is the last use of the costs of all models, and the next
    pages of a family the last use of a model. The model's data files are computed first, from the same counts."""
    slug = Path(file.src_uri).stem
    if not isinstance(file, Generated):
        release_costs()
    elif slug in presets.paths():
        with suppress(Problem):
            data_files.prepare(slug)
            records.prepare(slug)
            counted.append(presets.model(slug))
        if len(counted) < AT_ONCE:
            return
        while counted:
            counted.pop().release()
    memory.drop_large()
    if not preview.serving:  # which runs its own garbage collections
        gc.collect(1)  # of new objects: traces have reference cycles


def release_costs() -> None:
    """Drop the costs of all models, which take most memory, and models used only for drawings."""
    for model in memory.holders():
        if model.preset is None or model.folds:
            model.release()
        else:
            model.release_costs()


def on_post_page(output, page, config):
    put_back()


def put_back() -> None:
    while whole:
        models, children = whole.pop()
        models.children = children


def on_post_build_late(config):
    second_process.end()
    if preview.first is None:
        disk.close_store()
        folder = Path(config.config_file_path).parent
        if preview.serving and (folder / "macros/presets").is_dir():
            keep_schema(folder / SCHEMA)


def keep_schema(path: Path) -> None:
    """Keep the schema for editors up to date, which they use to complete and check presets (see .taplo.toml)."""
    text = preset_schema.schema_text()
    with suppress(OSError, Problem):
        if not path.is_file() or path.read_text("utf-8") != text:
            write(path, text, with_folders=True)
