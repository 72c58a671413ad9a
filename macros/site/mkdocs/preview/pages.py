"""What each page gave at the last build, and MkDocs' events at which it is given again.

There are four steps, each a tracked result of its own (`Latest` in macros/cache/memory.py):

    step      from                                          gives                       skipped by
    macros    the page's text, what its macros used         Markdown                    `render_macros: false`
    Markdown  that Markdown, the pages it links to          HTML, table of contents     `page.render` of this page
    search    that HTML                                     the page's entries in it    no HTML for it
    template  that HTML, the navigation, the pages' titles  the file                    an empty template for it

The texts of all pages are far more than fits well into memory: they are packed from where a step gave them to where the
next one reads them, and most are only compared. What went into a step is compared, not guessed: a module that was
edited runs all macros again, but only the pages whose Markdown came out different are rendered again.
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
from .inputs import Inputs, below, digest
from .lines import Errors, one_line
from .modules import PACKAGE, ROOT, Modules, is_kept, module_name, readers
from .server import Abandoned, Served, address
from .stand_ins import Compiled, Templates, Unknown, Watched, WatchedLoader

log = logging.getLogger("mkdocs.macros.preview")

SERVED = InclusionLevel.is_in_serve  # drafts, too

UNCHANGED = "unchanged.html"  # the empty template
SKIPPED = "render_macros"  # of a page's metadata: where it is false, no macro is called
SEARCH = "macros.site.mkdocs.search"
AT_ONCE = 50  # pages, before what making them has left behind is cleared
NOTHING = Packed("")
MARKDOWN = "macros.site.mkdocs.markdown", "macros.site.extensions."


def clear(pages: int) -> None:
    """Limits garbage collection: objects alive after this many pages stay, and this build does not scan them again."""
    if pages % AT_ONCE == 0:
        gc.collect()
        gc.freeze()


class Steps:
    """A page's results, step by step, each with its dependencies."""

    def __init__(self):
        self.address = ""
        self.title: Any = None  # for the navigation, while the page is left as it is
        self.meta: Any = None  # the page's own, while others stand in its place
        self.markdown: Latest[Packed] = Latest(NOTHING)
        self.html: Latest[tuple[dict, Packed]] = Latest(({}, NOTHING))  # what rendering sets on the page, and its HTML
        self.entries: Latest[list] = Latest([])  # of the search
        self.output: Latest[Packed | None] = Latest(None)  # the file


class Preview:
    """The state of one `mkdocs serve`."""

    served: Served  # both there once the server is
    inputs: Inputs
    page: Steps  # of the page under way

    def __init__(self):
        self.serving = False
        self.is_first = False
        self.running: dict[Path, str] = {}  # the digests of what this process keeps
        self.modules = Modules()
        self.unread: set[Path] = set()  # modules whose imports are not known yet
        self.addresses: dict[str, str] = {}
        self.navigation: Any = None
        self.nav: Any = None
        self.pages: dict[str, Steps] = {}
        self.compiled = Compiled()
        self.token = None
        self.error: BaseException | None = None
        self.first: frozenset | None = None  # the addresses that this build is for; None: all
        self.saved: set[Path] = set()  # since a build took over what it made
        self.built: list[File] = []  # the pages that this build is for
        self.is_complete = False  # a build of all pages has been
        self.is_edited = False  # something was saved since the start
        self.is_imported_anew = False  # what the modules before remembered is to leave the memory
        self.sizes: dict[str, int] = {}  # of each model, as the last build of all pages counted it
        self.others: list = []  # what that one generated besides pages: links lead there
        self.steps = 0  # that were done anew
        self.is_abandoned = False
        self.is_under_way = False  # the build got as far as the hooks

    def on_startup(self, command, **kwargs):
        context = click.get_current_context(silent=True)
        reloads = context is None or context.params.get("livereload", True)
        self.serving = self.is_first = command == "serve" and reloads
        if self.serving:  # now: on a busy machine, seconds may pass until a build reads the files
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
    def building(self, first: frozenset | None):
        """A build for the pages at these addresses, or for all."""
        self.error, self.first, self.is_under_way = None, first, False
        self.inputs.begin()
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
            gc.enable()
            self.stop()
            self.inputs.end()

    def outputs(self) -> dict[str, Packed | None]:
        """The results of each page of this build, by its address."""
        return {address_of(f): self.pages[f.src_uri].output.value for f in self.built}

    def go_on(self) -> None:
        """Ends a build that is not to continue: the work of a long one calls this, piece by piece."""
        if self.is_abandoned:
            raise Abandoned

    # What has changed

    def take_in(self, config) -> None:
        """Find the files saved since the last build, and forget all results that depend on them."""
        docs, theme, is_first = Path(config.docs_dir), config.theme.custom_dir, not self.inputs.taken
        if self.served.rest and not is_first and not self.inputs.are_taken_in:  # that save has a build of its own
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
            elif path.is_relative_to(docs / "includes") or path in self.inputs.files:  # the glossary is a setting, too
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
        invalidate(changed)
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
        """After an edit of a module that this process keeps, restart the process, once the new modules can be
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
        if "macros" not in config.plugins:
            raise PluginError("mkdocs.yml: plugins: macros is missing; add it: every figure comes from it")
        self.served.follow(config)
        self.take_in(config)
        # MkDocs, the theme and the search each make an environment for templates in each build. The method is replaced
        # on this one theme object.
        config.theme.get_env = lambda: self.templates(type(config.theme).get_env(config.theme))
        for name, error in self.modules.broken.items():
            line = one_line(error, [])
            raise PluginError(
                line
                if isinstance(error, SyntaxError) and error.lineno
                else f"{name.replace('.', '/')}.py: {line}; save it as UTF-8"
            )

    def templates(self, env):
        """An environment for the theme's templates: each is compiled once in the life of the process."""
        env.loader = Templates(env.loader.searchpath)
        env.bytecode_cache = self.compiled
        return env

    def on_pre_build_late(self, config):
        env = config.plugins["macros"].env
        env.loader = WatchedLoader(env.loader)

    def on_nav_late(self, nav, config, files):
        """The addresses of link targets; macros get files that record which of them they ask for."""
        self.nav = nav
        addresses = {f.src_uri: f"{f.url} {f.inclusion}" for f in files}
        changed = {
            ("page", uri)
            for uri in addresses.keys() | self.addresses.keys()
            if addresses.get(uri) != self.addresses.get(uri)
        }
        if changed:
            changed.add(("pages", None))
        self.addresses = addresses
        invalidate(changed)
        config.plugins["macros"].variables["files"] = Watched(files)
        self.all = files.documentation_pages(inclusion=SERVED)
        self.pages = {f.src_uri: self.pages.get(f.src_uri) or Steps() for f in self.all}
        self.built = self.all
        if self.first is not None:
            self.leave_the_others(files, config)

    def leave_the_others(self, files, config) -> None:
        """MkDocs builds the open and the saved pages and copies saved files: the others stay as they are."""
        saved = {os.path.abspath(path) for path in self.saved}
        self.built = [f for f in self.all if address_of(f) in cast(frozenset, self.first) or f.abs_src_path in saved]
        built = {id(f) for f in self.built}
        for file in self.all:
            if file.page is None and file.inclusion.is_not_in_nav():
                Page(None, file, config)
            if id(file) not in built and (page := file.page) is not None:
                steps = self.pages[file.src_uri]
                if "title" not in vars(page) and (title := steps.title or first_title(page)):
                    page.title = title
                page.meta = steps.meta or {}
                page.present_anchor_ids = steps.html.value[0]["present_anchor_ids"] if steps.html.is_there() else None
        copied = [
            f
            for f in files
            if not f.is_documentation_page()
            and SERVED(f.inclusion)
            and (f.abs_src_path in saved or not self.served.has(f.dest_uri))
        ]
        # MkDocs asks this one object which pages it builds, and has it copy the other files.
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
        clear(self.steps)

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
        # MkDocs has no event around the rendering itself. The method is replaced on this one page object.
        page.render = lambda config, files: self.render(page, steps, config, files)
        return ""  # until somebody reads it

    def render(self, page, steps: Steps, config, files) -> None:
        if steps.html.begin((steps.markdown.value, repr(page.meta), page.file.url)):
            result = dict(steps.html.value[0])
        else:
            page.markdown = steps.markdown.value.text()
            errors = Errors(logging.WARNING)
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
            # A warning is to be heard again, a snippet read again.
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
        """The pages are rendered, so the pages that can keep their file are known."""
        pages = [f.page for f in self.all if f.page is not None]
        navigation = [(p.title, p.url, p.canonical_url, p.edit_url, repr(p.meta), outline(p)) for p in pages]
        navigation.append(outline_of(self.nav))
        if navigation == self.navigation:
            navigation = self.navigation  # the same object: comparing it with itself takes no time
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


def address_of(file: File) -> str:
    """The address of a page, as in requests."""
    return address("" if file.url in (".", "./") else file.url)


def first_title(page: Page) -> str | None:
    """The title of a page that no build has reached yet, from its source. Errors in it are reported later."""
    try:
        markdown, said = meta.get_data(page.file.content_string)
    except (OSError, ValueError):
        return None
    title = said.get("title") or get_markdown_title(markdown)
    return str(escape(title)) if title else None


def outline(page) -> tuple:
    """A page's place in the navigation."""
    return tuple(other.url if other else None for other in (page.previous_page, page.next_page)) + tuple(
        a.title for a in page.ancestors
    )


def outline_of(item) -> Any:
    """The navigation as plain data."""
    if item is None:
        return None
    if isinstance(item, list):
        return [outline_of(i) for i in item]
    if hasattr(item, "items"):
        return [outline_of(i) for i in item.items]
    return (item.title, getattr(item, "url", None), [outline_of(i) for i in item.children or ()])
