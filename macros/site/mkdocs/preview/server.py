"""The server under live preview: MkDocs' own, which always has a whole site to serve, the open pages before all others.

a save -> the open pages are built -> their tabs reload -> all pages are built, in the background; a request for an
outdated page has it built at once

The site is built next to the one that is served. If a build fails, the old site stays, with the error's line at the top
of each page and open tab.
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
from urllib.parse import urlsplit

from watchdog.events import FileCreatedEvent, FileDeletedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEvent
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from ....cache import memory
from .addresses import ASSETS
from .heap import keep_memory_whole, trim
from .inputs import CHECKED
from .lines import Errors, Once, one_line
from .requests import Hosts, address, as_markdown, path_of, secured

log = logging.getLogger("mkdocs.macros.preview")

MOST = 4  # open pages that are built before the others

MANY = 20  # saves between full garbage collections
QUIET = 20  # idle seconds before a collection, which takes about a second

BANNER = '<div class="ep-mistakes" role="alert">{}</div>'  # its look is defined in docs/assets/components.css
SHOWN = 5  # the maximum number of lines with mistakes at the top of a page
NOT_BUILT = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Not built</title><body>"
    "<p>This page could not be built yet.</p></body></html>"
)


SAVES: list[type[FileSystemEvent]] = [FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileDeletedEvent]

GAP = 0.1  # seconds without a request after which a tab counts as loaded
PATIENCE = 2  # the longest time that the background build waits for this

LOOK = 2  # seconds between two scans of all files, for network drives without notifications
SHARE = 0.01  # the maximum share of a core for scans
TELLS = 0.5  # seconds within which the system reports a save


class Abandoned(BaseException):
    """Ends the build of the other pages because something was saved."""


class Watching(PollingObserver):
    """Lets the operating system report saves in these folders.

    MkDocs would scan thousands of files instead. While another thread builds, that takes half a minute, since each file
    waits for the interpreter's lock.
    """

    def __init__(self, timeout: float):
        super().__init__(timeout=timeout)
        self.folders = Observer()

    def schedule(self, event_handler, path, *, recursive=False, **options):
        if os.path.isdir(path):
            with suppress(OSError):  # limit of watches reached: `Served.look` finds saves there
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
        self.made_dir = server.root  # MkDocs' build folder
        self.emptied = f"{server.root}.emptied"  # the files of the last build
        self.site_dir = server.root = f"{server.root}.served"
        os.makedirs(self.site_dir, exist_ok=True)
        self.shown: list[str] = []  # the mistakes at the top of every page
        self.kept: set[str] = set()  # files that the current build has not rewritten
        self.unserved: set[str] = set()  # files that are newer than what is served
        self.open: dict[str, None] = {}  # addresses of pages, most recently requested last
        self.ready: frozenset | None = None  # those that are up to date; None for all
        self.loading = 0.0  # time of the last request, or of the last reload of a tab
        self.told_at = 0.0  # time of the last reload of the tabs
        self.version = 0
        self.news = threading.Condition()
        self.rest: threading.Thread | None = None
        self.asked: set[str] = set()  # addresses with waiting requests
        self.tried: set[str] = set()  # and those built since the last save
        self.absent: frozenset[str] = frozenset()  # and those that are no page
        self.is_interruptible = False  # whether all pages are being built
        self.is_looking = False  # whether saves are being processed
        self.is_stopped = False  # whether the background build is to end because of a save
        self.state: dict = {}  # the inputs of the save that is being built
        self.noticed: dict = {}  # and of the last noticed save
        self.told = ""  # the error of its build
        self.tidy: threading.Timer | None = None
        self.untidy = MANY  # saves since the last full collection
        self.is_cautious = False  # the background build failed, so the next one covers all pages
        self.is_in_doubt = False  # a file appeared and disappeared during the current build, which may have read it
        self.logged, self.once = Errors(), Once(self.docs_dir, self.is_overtaken)
        logger = logging.getLogger("mkdocs")
        for handler in logger.handlers:
            handler.addFilter(self.once)
        logger.addHandler(self.logged)
        self.app = server.get_app()
        server.set_app(self.answer)
        server.builder = self.rebuild
        keep_memory_whole()
        sys.setswitchinterval(0.001)  # so that open tabs are served during the background build
        # MkDocs looks for saves every 0.5 s, and then waits for 0.1 s without another. A save during a build starts
        # another one.
        for path in filter(None, (self.docs_dir, self.config_file)):
            server.unwatch(path)
        server.observer = Watching(timeout=0.1)
        server.build_delay = 0.02
        self.watched: set[str] = set()
        self.closed = threading.Event()
        # A change to this file counts as a save. It is in its own folder, because watching a file means watching its
        # folder.
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
        if path.startswith("/livereload/"):  # an open tab polls for changes
            self.opened(urlsplit(environ.get("HTTP_REFERER", "")).path.removeprefix(mount))
            return self.app(environ, start_response)
        page = self.opened(path.removeprefix(mount))
        self.loading = time.monotonic()
        if page.endswith(".md"):
            self.wait_for(page)  # until the pages are listed
        if (of := self.preview.asked_for.of_copy(page)) is not None and (copy := self.copy(of)) is not None:
            kind = ("Content-Type", "text/markdown; charset=utf-8")
            start_response("200 OK", [kind, ("Content-Length", str(len(copy)))])
            return [copy]
        while True:
            self.wait_for(page)
            version = self.version
            status, headers, body = self.ask(environ)
            if version == self.version:
                break  # otherwise it may predate the build that just ended
        if page in self.preview.asked_for.gone and status.startswith("200"):
            status = "404 Not Found"  # its file is replaced by the build of all pages
        if status.startswith("404"):  # MkDocs' script reloads only pages that it finds
            its_status, its_headers, its_body = self.ask({**environ, "PATH_INFO": f"{mount}404.html"})
            if str(its_status).startswith("200"):
                headers, body = its_headers, its_body
            elif self.shown:  # no build has come so far
                body = [self.server._inject_js_into_html(NOT_BUILT.encode(), self.server._visible_epoch)]
                headers = [("Content-Type", "text/html; charset=utf-8")]
        if any(name == "Content-Type" and value.startswith("text/html") for name, value in headers):
            gone = self.preview.asked_for.told_of_gone(page) if status.startswith("404") else ""
            content = self.marked(b"".join(body), page, [gone] if gone else [])
            headers = [(name, value) for name, value in headers if name != "Content-Length"]
            if page in self.preview.asked_for.sources or status.startswith("404"):  # else it has none when published
                content, policy = secured(content)
                headers = [*headers, ("Content-Security-Policy", policy)]
            headers, body = [*headers, ("Content-Length", str(len(content)))], [content]
        start_response(status, headers)
        return body

    def wait_for(self, page: str) -> None:
        """Wait until a page is up to date."""
        with self.news:
            if self.is_behind(page):
                self.ask_for(page)
            self.news.wait_for(lambda: not self.is_behind(page))

    def copy(self, page: str) -> bytes | None:
        """A page as Markdown, as a published site has it next to the page; None if it is not built."""
        self.wait_for(page)
        steps = self.preview.pages.get(self.preview.asked_for.sources.get(page, ""))
        return as_markdown(steps.html.value[1].text()) if steps and steps.html.value else None

    def marked(self, content: bytes, page: str, own: Iterable[str] = ()) -> bytes:
        """A page with its problems at the top, its own first."""
        source = f"docs/{self.preview.asked_for.sources.get(page)}:"
        lines = [*own, *sorted(self.shown, key=lambda line: not line.startswith(source))]
        if not lines:
            return content
        told = [f"<p>{html.escape(line)}</p>" for line in lines[:SHOWN]]
        if more := len(lines) - SHOWN if len(lines) > SHOWN else 0:
            told.append(f"<p>and {more} more, in the terminal</p>")
        banner = BANNER.replace("{}", "".join(told)).encode("utf-8", "replace")
        return re.sub(rb"<body[^>]*>", lambda m: m[0] + banner, content, count=1)

    def ask(self, environ) -> tuple[str, list, Iterable[bytes]]:
        """The answer of MkDocs' own server, which lets a request wait for the build that it started."""
        answers: list[tuple] = []
        body = self.app(environ, lambda *answer: answers.append(answer))
        return *answers[-1][:2], body

    def opened(self, path: str) -> str:
        """Record a page as open; returns its URL."""
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
        if not self.preview.asked_for.may_come(path, self.preview.is_complete):
            return False
        return not (path.startswith(("assets/", f"{ASSETS}/")) and self.has(path))

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
        """Run the first builds while the server starts."""
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
        """The function that MkDocs calls on a save; afterwards it has the open tabs reload."""
        self.is_looking = True  # thousands of files, each a chance for a computing thread to take over
        try:
            state = self.noticed = self.preview.inputs.read()
        finally:
            self.is_looking = False
        is_saved = state != self.state
        if not is_saved and not self.is_cautious and not self.told:
            self.is_in_doubt = True
            return  # reload unless the save was spurious or was undone
        if is_saved:
            self.once.lines.clear()
            config_file = Path(self.config_file)
            if state.get(config_file) != self.state.get(config_file):
                self.once.omitted = ""
        self.stop()
        if is_saved:  # until it ends, the background build may report outdated errors
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
        """Clean up after builds while the author is idle."""
        self.untidy += 1
        threading.Thread(target=shutil.rmtree, args=(self.emptied, True), daemon=True).start()
        self.tidy = threading.Timer(QUIET, self.clear_up)
        self.tidy.daemon = True
        self.tidy.start()

    def clear_up(self) -> None:
        if not (self.rest and self.rest.is_alive()):  # otherwise it would end in this one
            self.collect()

    def tidy_all(self) -> None:
        """Return unused memory to the system after a full build."""
        memory.release()
        if self.untidy >= MANY or self.preview.is_imported_anew:
            self.collect()
        else:
            trim()

    def collect(self) -> None:
        """Collect garbage among all objects, and exclude the rest from the collections after the next saves."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self.untidy, self.preview.is_imported_anew = 0, False
        trim()

    def build_rest(self, shown: dict, errors: list) -> None:
        """Build all pages, requested ones first. If an open page changes (because of another page's title, say), its
        tab reloads again. Look first for saves during the previous build."""
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
        elif not self.is_cautious:  # and it was reported
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
        with suppress(OSError):  # otherwise MkDocs first deletes hundreds of empty folders one by one
            os.rename(self.made_dir, self.emptied)
        try:
            with self.preview.building(first, state):
                self.builder()
            self.take_over(first is None)
            self.shown = list(self.once.errors.values())
        except Abandoned:
            self.preview.is_abandoned = True
            return False
        except (Exception, SystemExit) as error:
            if self.rest and (self.ready or self.is_in_doubt):  # the next build reports it, to the open tabs too
                self.is_cautious = True
                return False
            line = one_line(self.preview.error or error, self.logged.lines)
            if line != self.told:
                log.error(line)
            self.told = line
            self.shown = [line]
            self.release(None)
            return False
        self.absent |= (first or frozenset()) - self.preview.outputs().keys()
        self.release(None if first is None else frozenset({*self.preview.outputs(), *(self.ready or ())}))
        return True

    def give_way(self) -> None:
        """Pause the background build while a save is being examined and while tabs load a new page."""
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
        if path in self.unserved or not os.path.isfile(path):
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
            self.preview.saved.clear()
        self.unserved -= new
