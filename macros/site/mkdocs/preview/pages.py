"""Each page's results from the last build, and the MkDocs events at which they are reused.

There are four steps, each a tracked result of its own (`Latest` in macros/cache/memory.py):

    step      from                                          gives                       skipped by
    macros    the page's text, what its macros used         Markdown                    `render_macros: false`
    Markdown  that Markdown, the pages it links to          HTML, table of contents     `page.render` of this page
    search    that HTML                                     the page's entries in it    no HTML for it
    template  that HTML, the navigation, the pages' titles  the file                    an empty template for it

The texts of all pages take too much memory, so they are compressed between the steps, and most are only compared. The
inputs of a step are compared, not guessed: after a module is edited, all macros run again, but only the pages whose
Markdown differs are rendered again.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import click
import jinja2
from markupsafe import escape
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from mkdocs.utils import get_markdown_title, meta

from ....cache.memory import (
    Dependency,
    Latest,
    Packed,
    before_each_call,
    invalidate,
    start_tracking,
    stop_tracking,
    tracking,
)
from .addresses import Addresses, address_of
from .elsewhere import read_elsewhere
from .inputs import Inputs, below, digest
from .lines import Errors, one_line
from .modules import PACKAGE, ROOT, Modules, is_kept, module_name, readers
from .requests import address
from .server import Abandoned, Served
from .stand_ins import Compiled, Interruptible, Templates, Unknown, Watched, WatchedLoader, spare

log = logging.getLogger("mkdocs.macros.preview")

SERVED = InclusionLevel.is_in_serve  # drafts, too

UNCHANGED = "unchanged.html"  # the empty template
OURS = "macros.site"  # the object that generates a file
SKIPPED = "render_macros"  # a page's metadata: if false, no macro is called
SEARCH = "macros.site.mkdocs.search"
STYLES = "assets/styles.css"  # one sheet of those that may have been saved
AT_ONCE = 50  # pages between two clean-ups
NOTHING = Packed("")
MARKDOWN = "macros.site.mkdocs.markdown", "macros.site.extensions."


def clear(pages: int, is_all_new: bool) -> None:
    """Limit garbage collection to once every `AT_ONCE` pages. In a full build, live objects are excluded from further
    collections. Models release memory only once no page is waiting, since a save in between would have to recompute
    it."""
    if pages % AT_ONCE == 0:
        gc.collect()
        if is_all_new:
            gc.freeze()


class Steps:
    """A page's results, step by step, each with its dependencies."""

    def __init__(self):
        self.address = ""
        self.title: Any = None  # stands in for the navigation while the page is reused
        self.meta: Any = None  # the page's own attribute, while it is replaced
        self.markdown: Latest[Packed] = Latest(NOTHING)
        self.html: Latest[tuple[dict, Packed]] = Latest(({}, NOTHING))  # attributes set by rendering, and the HTML
        self.entries: Latest[list] = Latest([])  # search entries
        self.output: Latest[Packed | None] = Latest(None)  # the file


class Preview:
    """The state of one `mkdocs serve`."""

    served: Served  # set once the server has started
    inputs: Inputs
    page: Steps  # of the current page

    def __init__(self):
        self.serving = False
        self.refuses = False  # this is a build, and a wrong page ends it
        self.is_first = False
        self.running: dict[Path, str] = {}  # digests of the modules that this process holds
        self.modules = Modules()
        self.unread: set[Path] = set()  # modules whose imports are not known yet
        self.addresses: dict[str, tuple[str, InclusionLevel]] = {}
        self.asked_for = Addresses()
        self.navigation: Any = None
        self.nav: Any = None
        self.pages: dict[str, Steps] = {}
        self.compiled = Compiled()
        self.token = None
        self.error: BaseException | None = None
        self.first: frozenset | None = None  # the addresses that this build covers; None for all
        self.saved: set[Path] = set()  # whether a build's results were taken over
        self.all: list[File] = []  # the pages of this build
        self.built: list[File] = []  # and those that it covers
        self.is_complete = False  # there has been a full build
        self.is_edited = False  # whether something was saved since the start
        self.is_imported_anew = False  # the old modules' caches are to be freed
        self.sizes: dict[str, int] = {}  # each model's total in the last full build
        self.others: list[File] = []  # generated files other than pages in that build, as link targets
        self.steps = 0  # steps that ran again
        self.is_abandoned = False
        self.is_under_way = False  # whether the build reached the hooks

    def on_startup(self, command, **kwargs):
        context = click.get_current_context(silent=True)
        reloads = context is None or context.params.get("livereload", True)
        self.serving = self.is_first = command == "serve" and reloads
        if self.serving:  # now, because on a busy machine it may be seconds until a build reads the files
            kept = (p for p in below(PACKAGE) if p.suffix == ".py" and is_kept(module_name(p)))
            self.running = {path: digest(path) for path in kept}

    def on_config_first(self, config) -> None:
        """Before the server is up: MkDocs would hang if its address is not available."""
        host, port = config.dev_addr
        try:
            with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            mend = "stop the program that uses it, or choose another address with mkdocs serve -a 127.0.0.1:8001"
            raise PluginError(f"nothing can be served at {host}:{port}: {reason}; {mend}") from None

    def on_serve(self, server, config, builder, **kwargs):
        if self.serving:
            before_each_call.append(self.go_on)
            self.inputs = Inputs(config)
            self.served = Served(server, builder, self, config)
            self.served.begin()
        return server

    def on_shutdown(self):
        if hasattr(self, "served"):
            self.served.close()

    def on_build_error(self, error, **kwargs):
        self.error = error

    @contextmanager
    def building(self, first: frozenset | None, state: dict | None = None):
        """A build for the pages at these addresses, or for all, from inputs as they were just read."""
        self.error, self.first, self.is_under_way = None, first, False
        self.inputs.begin(state)
        try:
            self.start_again([p for p in self.running if self.running[p] != self.inputs.states.get(p, ("",))[0]])
            yield
            if not self.is_under_way:
                raise PluginError(
                    "mkdocs.yml: hooks: macros/site/mkdocs/hooks.py is missing; add it: no page can be built without"
                )
            if first is None:
                self.modules.read(self.unread)
                self.unread, self.is_complete = set(), True
        finally:
            self.stop()

    def outputs(self) -> dict[str, Packed | None]:
        """The results of each page of this build, by its address."""
        return {address_of(f): self.pages[f.src_uri].output.value for f in self.built}

    def go_on(self) -> None:
        """End a build that has become obsolete; long work calls this regularly."""
        if self.is_abandoned:
            raise Abandoned
        if self.serving:
            self.served.give_way()

    # Changes

    def take_in(self, config) -> None:
        """Find the files saved since the last build, and drop all results that depend on them."""
        docs, theme, is_first = Path(config.docs_dir), config.theme.custom_dir, not self.inputs.taken
        if self.served.rest and not is_first and not self.inputs.are_taken_in:  # that save gets its own build
            raise Abandoned
        saved = self.inputs.take_in()
        if not is_first:
            self.is_edited |= bool(saved)
            self.saved |= saved.keys()
        self.inputs.follow(config)
        changed: set[Dependency] = {("error", None)}
        code, whole = set(), is_first
        for path, is_new in saved.items():
            if path.suffix == ".py" and path.is_relative_to(PACKAGE):
                code.add(path)
                whole |= is_new
            elif path.suffix == ".toml" and path.is_relative_to(PACKAGE / "presets"):
                changed.add(("preset", path.stem))
                if is_new:
                    changed.add(("presets", None))
            elif path.suffix == ".toml" and path.is_relative_to(PACKAGE) and (reading := readers(path)):
                code |= reading
            elif theme and path.is_relative_to(theme):
                for page in self.pages.values():
                    page.output.drop()
            elif path.is_relative_to(docs / "includes") or path in self.inputs.files:  # the glossary is also a setting
                for page in self.pages.values():
                    for step in (page.markdown, page.html, page.entries, page.output):
                        step.drop()
            elif not path.is_relative_to(docs):
                whole = True
            if path.is_relative_to(docs):
                changed.add(("included", path.relative_to(docs).as_posix()))
        self.unread |= code
        if code and not is_first:
            self.modules.read(self.unread)
            self.unread = set()
        invalidate(changed, compares=not (code or whole))
        if code or whole:
            self.is_imported_anew = not is_first
            forgotten = self.modules.forget(None if whole else {module_name(p) for p in code})
            for page in self.pages.values():
                page.markdown.drop()
                if any(name.startswith(MARKDOWN) for name in forgotten):
                    page.html.drop()
                if SEARCH in forgotten:
                    page.entries.drop()
                if "macros.site.model_pages" in forgotten:
                    page.output.drop()

    def saved_presets(self) -> list[str]:
        """The presets that were saved since all pages were built, and that still exist."""
        return sorted(p.stem for p in self.saved if p.is_relative_to(PACKAGE / "presets") and p.is_file())

    def start_again(self, kept: list[Path]) -> None:
        """After an edit of a module that this process keeps, restarts the process, once the new modules can be
        imported."""
        if not kept:
            return
        name = kept[0].relative_to(ROOT)
        tried = subprocess.run(
            [sys.executable, "-B", "-c", "import macros.site.mkdocs.hooks"], cwd=ROOT, capture_output=True, text=True
        )
        if tried.returncode:
            raise PluginError(
                f"{name}: {tried.stderr.strip().splitlines()[-1]}; mend it: the preview goes on with the one before"
            )
        log.info(f"{name} was edited: the server restarts")
        self.served.close()
        shutil.rmtree(self.served.made_dir, ignore_errors=True)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    # The build, in the order of its events

    def on_config_early(self, config):
        self.is_under_way = True
        if self.first is None:
            gc.enable()  # the background build
        if "macros" not in config.plugins:
            raise PluginError("mkdocs.yml: plugins: macros is missing; add it: every figure comes from it")
        spare(config.plugins["macros"], config.plugins)
        self.served.follow(config)
        self.take_in(config)
        # MkDocs, the theme and the search each create a template environment per build, so the method of this theme
        # object is replaced.
        config.theme.get_env = lambda: self.templates(type(config.theme).get_env(config.theme))
        for name, error in self.modules.broken.items():
            line = one_line(error, [])
            raise PluginError(
                line
                if isinstance(error, SyntaxError) and error.lineno
                else f"{name.replace('.', '/')}.py: {line}; save it as UTF-8"
            )

    def templates(self, env):
        """An environment for the theme's templates, each compiled once per process."""
        env.loader = Templates(env.loader.searchpath)
        env.bytecode_cache = self.compiled
        return env

    def on_pre_build_late(self, config):
        env = config.plugins["macros"].env
        env.loader = WatchedLoader(env.loader)
        config.markdown_extensions.append(Interruptible(self.go_on))

    def on_nav_late(self, nav, config, files):
        """The addresses of link targets; macros get files that record their lookups."""
        self.nav = nav
        addresses = {f.src_uri: (f.url, f.inclusion) for f in files}
        changed = {
            ("page", uri)
            for uri in addresses.keys() | self.addresses.keys()
            if addresses.get(uri) != self.addresses.get(uri)
        }
        if changed:
            changed.add(("pages", None))
        self.addresses = addresses
        before = self.asked_for.gone
        self.asked_for.take_in(files)
        for path in sorted(self.asked_for.gone - before):
            if said := self.asked_for.told_of_gone(path):
                log.info(said)
        invalidate(changed)
        config.plugins["macros"].variables["files"] = Watched(files)
        for file in self.all:  # from the previous build: only a full collection would free them
            if file.page is not None:
                vars(file.page).clear()
        self.all = files.documentation_pages(inclusion=SERVED)
        self.pages = {f.src_uri: self.pages.get(f.src_uri) or Steps() for f in self.all}
        self.built = self.all
        if self.first is not None:
            self.leave_the_others(files, config)

    def leave_the_others(self, files, config) -> None:
        """Have MkDocs build the open and the saved pages and copy saved files. The others are reused, and generated
        pages, which take many seconds, wait for the full build."""
        saved = {os.path.abspath(path) for path in self.saved}
        self.built = [f for f in self.all if address_of(f) in cast(frozenset, self.first) or f.abs_src_path in saved]
        built = {id(f) for f in self.built}
        for file in self.all:
            if file.page is None and file.inclusion.is_not_in_nav():
                Page(None, file, config)
            if id(file) not in built and (page := file.page) is not None:
                steps = self.pages[file.src_uri]
                if "title" not in vars(page) and (title := steps.title or first_title(page)):
                    vars(page)["title"] = title
                page.meta = steps.meta or {}
                page.present_anchor_ids = steps.html.value[0]["present_anchor_ids"] if steps.html.is_there() else None
        copied = [
            f
            for f in files
            if not f.is_documentation_page()
            and SERVED(f.inclusion)
            and (f.abs_src_path in saved or not (f.generated_by == OURS or self.served.has(f.dest_uri)))
            or f.src_uri == STYLES
        ]
        # MkDocs lists the pages to build, and copies other files, through this object.
        files.documentation_pages = lambda **_: self.built
        files.copy_static_files = lambda **_: [file.copy_file() for file in copied]
        config.theme.static_templates = {name for name in config.theme.static_templates if not self.served.has(name)}

    def start(self, page) -> Steps:
        self.go_on()
        self.stop()
        self.page = self.pages.setdefault(page.file.src_uri, Steps())
        self.page.address = address(page.url)
        self.used: set = set()
        self.token = start_tracking(self.used)
        return self.page

    def stop(self) -> frozenset:
        if self.token is not None:
            stop_tracking(self.token)
            self.token = None
            return frozenset(self.used)
        return frozenset()

    def count(self) -> None:
        """A step that ran again."""
        self.steps += 1
        if self.first is None:  # otherwise somebody waits
            clear(self.steps, not self.is_complete or self.is_imported_anew)

    def on_page_markdown_early(self, markdown, page, config, files):
        steps = self.start(page)
        source = (markdown, repr(page.meta), page.title, page.file.url, repr(page.file.edit_uri))
        if steps.markdown.begin(source):
            steps.meta = dict(page.meta)
            page.meta[SKIPPED] = False

    def on_page_markdown_late(self, markdown, page, config, files):
        used, steps = self.stop(), self.page
        if not steps.markdown.is_current:
            steps.markdown.end(Packed(markdown), used)
        elif SKIPPED in steps.meta:
            page.meta[SKIPPED] = steps.meta[SKIPPED]
        else:
            del page.meta[SKIPPED]
        # MkDocs has no event around the rendering itself, so the method of this page object is replaced.
        page.render = lambda config, files: self.render(page, steps, config, files)
        return ""  # until it is read

    def render(self, page, steps: Steps, config, files) -> None:
        if steps.html.begin((steps.markdown.value, repr(page.meta), page.file.url)):
            result = dict(steps.html.value[0])
        else:
            page.markdown = steps.markdown.value.text()
            errors = Errors(logging.INFO)
            logging.getLogger("mkdocs").addHandler(errors)
            try:
                with tracking() as used:
                    Page.render(page, config, cast(Files, Watched(files)))
            finally:
                logging.getLogger("mkdocs").removeHandler(errors)
            links = {to.src_uri: anchors for to, anchors in (page.links_to_anchors or {}).items()}
            result = {
                "toc": page.toc,
                "_title_from_render": page._title_from_render,
                "present_anchor_ids": page.present_anchor_ids,
                "links_to_anchors": links,
            }
            # Repeats warnings, and reads snippets again.
            is_told = bool(errors.lines) or "--8<--" in page.markdown
            self.rendered = dict(result), frozenset(used), is_told
        links = ((files.get_file_from_path(uri), anchors) for uri, anchors in result.pop("links_to_anchors").items())
        page.links_to_anchors = {to: anchors for to, anchors in links if to is not None}
        vars(page).update(result)
        page.content = page.content or ""
        if ("error", None) in steps.markdown.used:
            page.present_anchor_ids = cast(set, Unknown())

    def on_page_content_late(self, html, page, config, files):
        step = self.page.html
        if not step.is_current:
            result, used, is_told = self.rendered
            step.end((result, Packed(html)), used)
            if is_told:
                step.drop()
            self.count()
        return ""  # until somebody reads it

    def on_env_late(self, env, config, files):
        """All pages have been rendered, so it is known which ones can keep their file."""
        pages = [f.page for f in self.all if f.page is not None]
        navigation = read_elsewhere(pages, self.nav)
        if navigation == self.navigation:
            navigation = self.navigation  # the same object, which compares at once
        self.navigation = navigation
        for page in (f.page for f in self.built if f.page is not None):
            steps = self.pages[page.file.src_uri]
            steps.title, steps.meta = page.title, page.meta
            key = (steps.html.value[1], page.title, page.url, repr(page.meta), page.file.inclusion)
            steps.entries.begin(key)
            if steps.output.begin((key, navigation)):
                page.meta = {**page.meta, "template": UNCHANGED}
        env.loader = jinja2.ChoiceLoader([jinja2.DictLoader({UNCHANGED: ""}), env.loader])
        return env

    def on_page_context_early(self, context, page, config, nav):
        """The search reads the page's HTML; it gets none if its entries are known."""
        steps = self.start(page)
        if steps.output.is_current:
            page.meta = steps.meta
        if not (steps.output.is_current and steps.entries.is_current):
            self.content = steps.html.value[1].text()
            page.content = "" if steps.entries.is_current else self.content
        self.entries = sys.modules[SEARCH].entries
        self.length = len(self.entries)

    def on_page_context_late(self, context, page, config, nav):
        steps = self.page
        page.content = "" if steps.output.is_current else self.content
        if steps.entries.is_current:
            self.entries[self.length :] = steps.entries.value
        else:
            steps.entries.end(self.entries[self.length :])

    def on_post_page_early(self, output, page, config):
        step = self.page.output
        page.content = ""
        if not step.is_current:
            self.output = Packed(output)
            self.count()
        elif step.value is not None:
            return "" if self.served.keeps(page.file.dest_uri, True) else step.value.text()

    def on_post_page_late(self, output, page, config):
        used, step = self.stop(), self.page.output
        if not step.is_current:
            step.end(self.output, used)
        if self.served.keeps(page.file.dest_uri, step.is_current):
            return ""  # MkDocs writes no empty page


def first_title(page: Page) -> str | None:
    """The title of a page that has not been built yet, from its source. Its errors are reported later."""
    try:
        markdown, said = meta.get_data(page.file.content_string)
    except (OSError, ValueError):
        return None
    title = said.get("title") or get_markdown_title(markdown)
    return str(escape(title)) if title else None
