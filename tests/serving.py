"""The site that tests look at: built once by whoever needs it first, and served to all of them."""

import functools
import http.server
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from copies import ROOT, build_process

SUBPATH = "/below/a/path"


def site_process(folder: Path, address: str) -> subprocess.Popen:
    return build_process(ROOT, "--strict", "--site-dir", str(folder / "site"), SITE_URL=address)


def note_outcome(process: subprocess.Popen, folder: Path) -> None:
    """Wait for the site, and writes down what was wrong with it."""
    said = process.communicate()[1]
    is_wrong = process.returncode or re.search(r"^WARNING", said, re.M)
    (folder / "written").write_text(said[-4000:] if is_wrong else "", "utf-8")
    (folder / "written").rename(folder / "outcome")


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

    def do_GET(self):
        """On a busy machine a font comes late, and its page would do without it: here it takes it then."""
        path = Path(self.translate_path(self.path))
        if path.name != "styles.css" or not path.is_file():
            return super().do_GET()
        content = path.read_bytes().replace(b"font-display: optional", b"font-display: swap")
        self.send_response(200)
        self.send_header("Content-Type", "text/css")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that leaves a page early breaks off what it was being sent."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(folder, handler=Handler):
    """An address at which the folder, which may still be empty, is served; it ends in a slash."""
    with Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUBPATH}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site_folder(pytestconfig):
    """The whole site, built strictly, by the first worker that comes here if it is not under way; the others wait."""
    folder, address = Path(pytestconfig.site[0]), pytestconfig.site[1]
    outcome = folder / "outcome"
    try:
        (folder / "building").mkdir()
    except FileExistsError:
        while not outcome.exists():
            time.sleep(0.1)
    else:
        note_outcome(site_process(folder, address), folder)
    assert not (wrong := outcome.read_text("utf-8")), f"mkdocs build --strict failed:\n{wrong}"
    return folder / "site"


@pytest.fixture
def site(site_folder, pytestconfig):
    """The address of the whole site."""
    return pytestconfig.site[1]


def own_assets(site_folder):
    """The folder of our own scripts and styles: its name changes with them."""
    (folder,) = Path(site_folder).glob("assets-*")
    return folder


IMPORTED = re.compile(r"""(?:from|import)\s*["'](\.[^"']+)["']""")


def with_imports(names):
    """Scripts of the pages, by their paths in docs/assets, and all that they import."""
    folder, found = (ROOT / "docs/assets").resolve(), {}
    waiting = [folder / name for name in names]
    while waiting:
        path = waiting.pop().resolve()
        name = path.relative_to(folder).as_posix()
        if name not in found and path.is_file():  # what the build writes is not there
            found[name] = path.read_text("utf-8")
            waiting += [path.parent / other for other in IMPORTED.findall(found[name])]
    return found


def write_engine(folder, *scripts):
    """Put the compiled engine into a folder, with these scripts of the pages beside it."""
    from macros.browser.bundle import files

    for name, text in with_imports([*scripts, "architectures.mjs", "conditions.mjs", "problems.mjs"]).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "engine").mkdir()
    for name, text in files().items():
        (folder / "engine" / name).write_text(text, "utf-8")
