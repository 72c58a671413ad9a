"""The site as a reader gets it: built once, served below a sub-path, opened in a Chromium that reports what it should not do."""

import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from hypothesis import settings

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")

ROOT = pathlib.Path(__file__).parent.parent
SUBPATH = "/below/a/path"


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".woff2": "font/woff2",
    }

    def translate_path(self, path):
        path = urlsplit(path).path
        return super().translate_path(path[len(SUBPATH) :] if path.startswith(SUBPATH + "/") else "/no-such-page")

    def log_message(self, *args):
        pass


@contextmanager
def served(folder):
    """An address at which the folder, which may still be empty, is served; it ends in a slash."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUBPATH}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The address of the whole site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    with served(folder) as address:
        built = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
            cwd=ROOT,
            env={**os.environ, "SITE_URL": address, "NO_MKDOCS_2_WARNING": "1"},
            text=True,
            capture_output=True,
        )
        assert built.returncode == 0, f"mkdocs build --strict failed:\n{built.stderr[-4000:]}"
        assert not re.search(r"^WARNING", built.stderr, re.M), built.stderr[-4000:]
        yield address


@pytest.fixture(scope="session")
def browser():
    """Chromium. Without one the tests in a browser are skipped, unless CI is set."""
    path = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None
    )
    if not path:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium found: install it, or name it in CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """`open_page(address, **context)` opens a page; at the end nothing may stand on its console, no other host may have been asked."""
    contexts, complaints = [], []

    def open_(address, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.route(
            lambda url: urlsplit(url).scheme in ("http", "https") and urlsplit(url).netloc != urlsplit(address).netloc,
            lambda route: (complaints.append(f"asked another host: {route.request.url}"), route.abort()),
        )
        page = context.new_page()
        page.on(
            "console",
            lambda m: complaints.append(f"{page.url}: {m.type}: {m.text}") if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
        page.on("response", lambda r: complaints.append(f"{page.url}: {r.status} {r.url}") if r.status >= 400 else None)
        page.goto(address, wait_until="load")
        return page

    open_.complaints = complaints
    yield open_
    for context in contexts:
        context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def page(open_page, site):
    """The home page in a fresh browser context."""
    return open_page(site)


def overflow(page):
    """By how many pixels the page is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def accessibility(page):
    """What axe-core finds that is serious or critical, a line each."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        f"{found['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')}"
        for found in Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]
