"""The server under live preview: MkDocs' own, which always has a whole site to serve, the open pages before all others.

    a save  ->  the open pages are built  ->  their tabs reload
            ->  all pages are built, in the background; who asks for one that is behind has it built at once

The site is built beside the one that is served. A build that fails leaves that one to browse, with the error's line on
top of each page, and so in each open tab.
"""

from __future__ import annotations

import gc
import html
import logging
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mkdocs.structure.files import File
from watchdog.events import FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEvent
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from ....cache import memory
from .heap import keep_memory_whole, trim
from .inputs import CHECKED, below
from .lines import Errors, Once, one_line
from .modules import PACKAGE
from .requests import Hosts, path_of

log = logging.getLogger("mkdocs.macros.preview")

MOST = 4  # open pages that are built before the others

NAMED_BY_CONTENT = re.compile(r"\.[0-9a-f]{8}\.min\.(css|js)$")  # a tab need not ask for such a file again

MANY = 20  # saves after which all that is in memory is looked at
QUIET = 20  # and seconds without a save: it takes one, in which nothing else goes on

BANNER = (
    '<p class="ep-error" role="alert" style="position:sticky;top:0;z-index:99;margin:0;padding:.6rem 1rem;'
    'background:#b00020;color:#fff;font:.7rem/1.4 monospace">{}</p>'
)


SAVES: list[type[FileSystemEvent]] = [FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileDeletedEvent]

GAP = 0.1  # seconds without a request, after which a tab has what it loads
PATIENCE = 2  # and the longest that the build of the other pages waits for that

LOOK = 2  # seconds between two looks at all files: for a drive of another machine, of which the system is not told
SHARE = 0.01  # the most of a core that they take
TELLS = 0.5  # and those in which the system has told of what it tells


class Abandoned(BaseException):
    """Ends the build of the other pages: something was saved."""


class Watching(PollingObserver):
    """Has the system report saves in folders. Scanning thousands of files, as MkDocs does, takes a thread half a minute
    while another one builds: each file waits for the interpreter's lock."""

    def __init__(self, timeout: float):
        super().__init__(timeout=timeout)
        self.folders = Observer()

    def schedule(self, event_handler, path, *, recursive=False, **options):
        if os.path.isdir(path):
            with suppress(OSError):  # no more can be watched: `Served.look` finds what is saved there
                return self.folders.schedule(event_handler, path, recursive=recursive, event_filter=SAVES)
        return super().schedule(event_handler, path, recursive=recursive, **options)

    def start(self) -> None:
        with suppress(OSError):
            self.folders.start()
        super().start()

    def on_thread_stop(self) -> None:
        super().on_thread_stop()
        self.folders.stop()


class Served:
    """The site that is served, and its builds."""

    def __init__(self, server, builder, preview, config):
        self.server, self.builder, self.preview = server, builder, preview
        self.docs_dir, self.config_file = config.docs_dir, config.config_file_path or ""
        self.made_dir = server.root  # where MkDocs builds
        self.emptied = f"{server.root}.emptied"  # what a build left there
        self.site_dir = server.root = f"{server.root}.served"
        os.makedirs(self.site_dir, exist_ok=True)
        self.is_marked = False  # with an error's line on its pages
        self.kept: set[str] = set()  # files that the build under way did not write again
        self.unserved: set[str] = set()  # files that are newer than what is served
        self.open: dict[str, None] = {}  # addresses of pages, the one asked for last at the end
        self.ready: frozenset | None = None  # those that are up to date; None: all
        self.loading = 0.0  # when something was last asked for, or a tab told to
        self.told_at = 0.0  # when the tabs were last told to load a page again
        self.version = 0
        self.news = threading.Condition()
        self.rest: threading.Thread | None = None
        self.asked: set[str] = set()  # addresses that somebody waits for
        self.tried: set[str] = set()  # and those that a build was for, since the last save
        self.absent: frozenset[str] = frozenset()  # and that are no page
        self.is_interruptible = False  # all pages are being built
        self.is_looking = False  # what was saved is being read
        self.is_stopped = False  # something was saved: what the background does is to end
        self.state: dict = {}  # the inputs of the last save that is being built
        self.noticed: dict = {}  # and of the last one that was noticed
        self.told = ""  # how its build failed
        self.tidy: threading.Timer | None = None
        self.untidy = MANY  # saves since all that is in memory was looked at
        self.is_cautious = False  # the build of the other pages failed: the next one is for all
        self.is_in_doubt = False  # a file came and went since the build under way began, which may have read it
        self.logged, self.once = Errors(), Once(self.docs_dir, self.is_overtaken)
        logger = logging.getLogger("mkdocs")
        for handler in logger.handlers:
            handler.addFilter(self.once)
        logger.addHandler(self.logged)
        self.app = server.get_app()
        server.set_app(self.answer)
        server.builder = self.rebuild
        keep_memory_whole()
        sys.setswitchinterval(0.001)  # an open tab gets its files while the other pages are being built
        # MkDocs looks for saves every 0.5 s and then waits for 0.1 s without another. A save that comes during a build
        # leads to another build.
        for path in filter(None, (self.docs_dir, self.config_file)):
            server.unwatch(path)
        server.observer = Watching(timeout=0.1)
        server.build_delay = 0.02
        self.watched: set[str] = set()
        self.closed = threading.Event()
        # A change of this file is a save, too. It has a folder of its own: looking at a file is looking at its folder.
        self.reload = Path(f"{self.made_dir}.reload", "saves")
        self.reload.parent.mkdir()
        self.reload.touch()
        self.watch([self.reload, self.config_file])
        self.follow(config)

    def follow(self, config) -> None:
        """The server's part of the settings."""
        self.hosts = Hosts(config)
        self.watch([config.docs_dir, *config.watch, *CHECKED, config.theme.custom_dir or config.docs_dir])

    def watch(self, paths) -> None:
        """From now on, report saves below these."""
        for path in {os.path.abspath(p) for p in paths} - self.watched:
            if os.path.exists(path):
                self.watched.add(path)
                self.server.watch(path)

    # Requests

    def answer(self, environ, start_response):
        """The answer of MkDocs' server, once it is up to date; records which pages are open."""
        if wrong := self.hosts.refusal(environ.get("HTTP_HOST")):
            start_response("403 Forbidden", [("Content-Type", "text/plain"), ("X-Content-Type-Options", "nosniff")])
            return [wrong.encode()]
        path, mount = path_of(environ), self.server.mount_path
        if path is None:
            environ = {**environ, "PATH_INFO": f"{mount}404.html"}
            start_response("404 Not Found", [("Content-Type", "text/html")])
            return self.ask(environ)[2]
        if path.startswith("/livereload/"):  # an open tab asks for news
            self.opened(urlsplit(environ.get("HTTP_REFERER", "")).path.removeprefix(mount))
            return self.app(environ, start_response)
        page = self.opened(path.removeprefix(mount))
        self.loading = time.monotonic()
        while True:
            with self.news:
                if self.is_behind(page):
                    self.ask_for(page)
                self.news.wait_for(lambda: not self.is_behind(page))
            version = self.version
            status, headers, body = self.ask(environ)
            if version == self.version:
                break  # else it may have been read before the build that ended meanwhile
        if status.startswith("404"):  # MkDocs has its script reload such pages only that it finds
            its_status, *instead = self.ask({**environ, "PATH_INFO": f"{mount}404.html"})
            if its_status.startswith("200"):
                headers, body = instead
        if status.startswith("200") and NAMED_BY_CONTENT.search(path):
            headers = [*headers, ("Cache-Control", "max-age=3600")]
        start_response(status, headers)
        return body

    def ask(self, environ) -> tuple[str, list, Iterable[bytes]]:
        """The answer of MkDocs' own server, which lets a request wait for the build that it started."""
        answers: list[tuple] = []
        body = self.app(environ, lambda *answer: answers.append(answer))
        return *answers[-1][:2], body

    def opened(self, path: str) -> str:
        """Record a page that somebody looks at; returns its address."""
        page = address(path)
        if page == "" or page.endswith(("/", ".html")):
            self.open.pop(page, None)
            self.open[page] = None
            for oldest in list(self.open)[:-MOST]:
                self.open.pop(oldest, None)
        return page

    def is_behind(self, path: str) -> bool:
        ready = self.ready
        if ready is None or path in ready or path in self.absent:
            return False
        return not (path.startswith("assets/") and self.has(path))

    def has(self, uri: str) -> bool:
        """Whether the served site has such a file."""
        return os.path.isfile(os.path.join(self.site_dir, os.path.normpath(uri)))

    def ask_for(self, path: str) -> None:
        """Have a page built before the others."""
        if path not in self.tried and (path == "" or path.endswith(("/", ".html"))):
            self.tried.add(path)
            self.asked.add(path)
            if self.is_interruptible:
                self.preview.is_abandoned = True

    # Builds

    def begin(self) -> None:
        """The first builds, while the server begins to answer."""
        self.state = self.noticed = self.preview.inputs.read()
        self.build_in_background()
        threading.Thread(target=self.look, daemon=True).start()

    def look(self) -> None:
        """Notice saves that the system did not report."""
        took = 0.0
        while not self.closed.wait(max(LOOK, took / SHARE)):
            noticed, began = self.noticed, time.thread_time()
            state = self.preview.inputs.read()
            took = time.thread_time() - began
            if state != noticed and not self.closed.wait(TELLS) and self.noticed is noticed:
                self.have_rebuilt()

    def have_rebuilt(self) -> None:
        """Start a build as MkDocs does after a save."""
        try:
            self.reload.write_text(f"{self.reload.read_text()}.")
        except OSError as full:
            log.error(f"the open tabs are not told: {full.strerror}")

    def is_overtaken(self) -> bool:
        """Whether this is the build of the other pages, and something was saved that the next one reports."""
        return threading.current_thread() is self.rest and self.preview.inputs.read() != self.state

    def rebuild(self) -> None:
        """The function that MkDocs calls at a save; it then has the open tabs reload."""
        self.is_looking = True  # thousands of files, before each of which a thread that computes would run
        try:
            state = self.noticed = self.preview.inputs.read()
        finally:
            self.is_looking = False
        is_saved = state != self.state
        if not is_saved and not self.is_cautious and not self.told:
            self.is_in_doubt = True
            return  # the tabs are to reload, it was one save that looked like two, or one that was taken back
        if is_saved:
            self.once.lines.clear()
            config_file = Path(self.config_file)
            if state.get(config_file) != self.state.get(config_file):
                self.once.omitted = ""
        self.stop()
        if is_saved:  # until it ended, the build of the other pages could tell what was wrong before
            self.once.errors.clear()
            self.told = ""
        self.state = state
        first = None if self.is_cautious else frozenset(self.open)
        self.is_cautious = self.preview.is_abandoned = False
        self.ready, self.tried, self.absent = frozenset(), set(), frozenset()
        if self.build(first, state) and first is not None:
            self.build_in_background()
        else:
            gc.enable()
            self.preview.inputs.end()
        self.tidy_up()

    def build_in_background(self) -> None:
        self.ready = self.ready or frozenset()
        self.is_stopped = self.preview.is_abandoned = False
        shown = self.preview.outputs() if self.ready else {}
        self.rest = threading.Thread(target=self.build_rest, args=(shown, list(self.once.errors)), daemon=True)
        self.rest.start()

    def tidy_up(self) -> None:
        """Clear up after builds while nobody waits: an author who is at it saves again soon."""
        self.untidy += 1
        threading.Thread(target=shutil.rmtree, args=(self.emptied, True), daemon=True).start()
        self.tidy = threading.Timer(QUIET, self.clear_up)
        self.tidy.daemon = True
        self.tidy.start()

    def clear_up(self) -> None:
        if not (self.rest and self.rest.is_alive()):  # else it ends in this
            self.collect()

    def tidy_all(self) -> None:
        """After a build of all pages: give back the memory that nothing needs."""
        memory.release()
        if self.untidy >= MANY or self.preview.is_imported_anew:
            self.collect()
        else:
            trim()

    def collect(self) -> None:
        """Look for garbage among all objects, and exclude what is left from the collections after the next saves."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self.untidy, self.preview.is_imported_anew = 0, False
        trim()

    def build_rest(self, shown: dict, errors: list) -> None:
        """All pages, and before them any that somebody requests. If that changes an open one (by another page's title,
        say), its tab reloads once more. First, what was saved during the build before is looked for: its tabs are
        told."""
        self.preview.inputs.end()
        while True:
            with self.news:
                asked, self.asked = frozenset(self.asked) - (self.ready or frozenset()), set()
                self.preview.is_abandoned = self.is_stopped
                self.is_interruptible = not asked
            if not asked:
                self.give_way()
            worked = self.build(asked or None)
            self.preview.inputs.end(self.noticed if self.is_stopped else None)
            with self.news:
                self.is_interruptible = False
            if self.is_stopped:
                return
            if worked and asked:
                shown |= self.preview.outputs()
            elif worked or not self.preview.is_abandoned:
                break
            elif not self.asked:  # a save that has not been noticed yet
                return
        if worked:
            self.tidy_all()
        elif not self.is_cautious:  # and it was told
            return
        now = self.preview.outputs() if worked else {}
        if not worked or {address: now.get(address) for address in shown} != shown or list(self.once.errors) != errors:
            self.have_rebuilt()

    def build(self, first: frozenset | None, state: dict | None = None) -> bool:
        """A build that brings the first pages up to date, or all of them; returns whether it succeeded. Call
        `inputs.end` after it."""
        self.logged.lines.clear()
        self.kept.clear()
        self.is_in_doubt = False
        with suppress(OSError):  # else MkDocs deletes hundreds of empty folders one by one, before all
            os.rename(self.made_dir, self.emptied)
        try:
            with self.preview.building(first, state):
                self.builder()
            self.take_over(first is None)
            if errors := list(self.once.errors.values()):
                self.show(errors[0] + (f" (and {len(errors) - 1} more, in the terminal)" if errors[1:] else ""))
        except Abandoned:
            self.preview.is_abandoned = True
            return False
        except (Exception, SystemExit) as error:
            if self.rest and (self.ready or self.is_in_doubt):  # the build that follows tells it, to the open tabs too
                self.is_cautious = True
                return False
            line = one_line(self.preview.error or error, self.logged.lines)
            if line != self.told:
                log.error(line)
            self.told = line
            try:
                self.show(line)
            except OSError as full:  # the pages stay as they are, and are served
                log.error(f"{line}; nor can it be shown on the pages: {full.strerror}")
            self.release(None)
            return False
        self.absent |= (first or frozenset()) - self.preview.outputs().keys()
        self.release(None if first is None else frozenset({*self.preview.outputs(), *(self.ready or ())}))
        return True

    def give_way(self) -> None:
        """While a save is looked at, and while tabs load a page that was just built, the build of the other pages
        waits."""
        if threading.current_thread() is not self.rest:
            return
        while self.is_looking and not self.preview.is_abandoned:
            time.sleep(0.002)
        if self.is_interruptible:
            while (now := time.monotonic()) < min(self.loading + GAP, self.told_at + PATIENCE):
                if self.preview.is_abandoned:
                    return
                time.sleep(min(0.01, self.loading + GAP - now))

    def release(self, ready: frozenset | None) -> None:
        if ready is not None:
            self.loading = self.told_at = time.monotonic()
        with self.news:
            self.version += 1
            self.ready = ready
            self.news.notify_all()

    def stop(self) -> None:
        """End the build of the other pages at the next page."""
        if self.tidy:
            self.tidy.cancel()
        if self.rest and self.rest is not threading.current_thread():
            self.is_stopped = self.preview.is_abandoned = True
            self.rest.join()
            self.rest = None

    def close(self) -> None:
        self.closed.set()
        self.stop()
        for folder in (self.site_dir, self.emptied, self.reload.parent):
            shutil.rmtree(folder, ignore_errors=True)

    def keeps(self, uri: str, is_same: bool) -> bool:
        """Whether a page's file need not be written: the served one is equal, and not from an abandoned build."""
        path = os.path.join(self.site_dir, os.path.normpath(uri))
        if not is_same:
            self.unserved.add(path)
        if self.is_marked or path in self.unserved or not os.path.isfile(path):
            return False
        self.kept.add(path)
        return True

    def take_over(self, is_whole: bool) -> None:
        """Move the new build over the served site, file by file: an open tab may be loading."""
        new = set(self.kept)
        for folder, _, names in os.walk(self.made_dir):
            to = os.path.normpath(os.path.join(self.site_dir, os.path.relpath(folder, self.made_dir)))
            if os.path.isfile(to):
                os.unlink(to)
            os.makedirs(to, exist_ok=True)
            for name in names:
                self.give_way()
                path = os.path.join(to, name)
                new.add(path)
                if os.path.isdir(path):
                    shutil.rmtree(path)
                os.replace(os.path.join(folder, name), path)
        if is_whole:
            for folder, _, names in os.walk(self.site_dir, topdown=False):
                self.give_way()
                for path in (os.path.join(folder, name) for name in names):
                    if path not in new:
                        os.unlink(path)
                if not os.listdir(folder) and folder != self.site_dir:
                    os.rmdir(folder)
            self.is_marked = False
            self.preview.saved.clear()
        self.unserved -= new

    def show(self, line: str) -> None:
        """Show the line at the top of each page of the last good site, and on each page that no build has reached."""
        sources = [p.relative_to(self.docs_dir).as_posix() for p in below(Path(self.docs_dir)) if p.suffix == ".md"]
        sources += pages_of_presets()
        for source in ("404.html", *sources):
            path = Path(File(source, None, self.site_dir, True).abs_dest_path)
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(
                    "<!doctype html><html lang=en><meta charset=utf-8><title>Not built</title><body></body></html>"
                )
        self.is_marked = True
        old, new = (BANNER.replace("{}", x) for x in ("\0", html.escape(line)))
        old = re.compile(re.escape(old).replace("\0", ".*?"))
        for path in Path(self.site_dir).rglob("*.html"):
            text = old.sub("", path.read_text("utf-8", errors="surrogateescape"), count=1)
            marked = path.with_suffix(".marked")
            marked.write_text(
                re.sub(r"<body[^>]*>", lambda m: m[0] + new, text, count=1), "utf-8", errors="surrogateescape"
            )
            marked.replace(path)


def pages_of_presets() -> list[str]:
    """The paths of `catalogue.page_paths`, which the preview cannot import: it imports nothing that an edit may have
    broken."""
    return [
        f"models/{path.parent.name}/{path.stem}.md" for path in below(PACKAGE / "presets") if path.suffix == ".toml"
    ]


def address(path: str) -> str:
    """A page's address below the site's: from a request or from MkDocs, the same for both."""
    return unquote(path).removeprefix("/").removesuffix("index.html")
