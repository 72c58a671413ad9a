"""The live preview: whatever is saved, in whatever order, it serves what a clean build gives; a broken save is one line
and mends.
"""

import html
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from copies import PRESETS, ROOT, build, environment, small_site

from macros import dependencies as remember
from macros.site.preview import modules

pytestmark = pytest.mark.processes


class Serve:
    """`mkdocs serve` of a folder."""

    def __init__(self, folder: pathlib.Path, seconds: float = 60):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder, self.address, self.temporary = (
            folder,
            f"http://127.0.0.1:{self.port}/",
            folder.parent / "temporary",
        )
        self.temporary.mkdir(exist_ok=True)
        self.log = folder.parent / "serve.log"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self.port}"],
            cwd=folder,
            env=environment(TMPDIR=str(self.temporary)),
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
            # A shell lets what it starts in the background ignore Ctrl-C, and what that starts too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        until(self.epoch, seconds)

    def epoch(self, after: int = 0) -> int:
        """The version of the site that is served; waits for one after the given."""
        try:
            return int(urllib.request.urlopen(f"{self.address}livereload/{after}/0", timeout=60).read())
        except OSError:
            assert self.process.poll() is None, self.log.read_text()
            return 0

    def get(self, path: str) -> str:
        try:
            return urllib.request.urlopen(self.address + path, timeout=60).read().decode()
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"
        except OSError:  # the server is starting again
            return ""

    def shows(self, path: str, text: str, seconds: float = 30) -> None:
        try:
            until(lambda: text in html.unescape(re.sub(r"<(?!!)[^>]*>", "", self.get(path))), seconds)
        except AssertionError:
            log = [x for x in self.log.read_text().splitlines() if " code 404" not in x]
            raise AssertionError("\n".join([f"/{path} never showed {text!r}", *log[-20:]])) from None

    def files(self) -> dict[str, bytes]:
        """Every file that is served; none while the server puts files in their place, or starts again."""
        try:
            [site] = self.temporary.glob("mkdocs_*.served")
            return contents(site)
        except (OSError, ValueError):
            return {}

    def becomes_a_clean_build(self, after: object = "") -> None:
        """What is served is soon what `mkdocs build` gives in the folder's present state."""
        self.becomes(clean_build(self.folder, self.address), after)

    def becomes(self, expected: dict[str, bytes], after: object = "") -> None:
        try:
            until(lambda: self.files() == expected, 60)
        except AssertionError:
            served = self.files()
            different = [n for n in sorted(expected.keys() | served.keys()) if expected.get(n) != served.get(n)]
            raise AssertionError(f"{after} {different[:10]}\n{self.log.read_text()[-2000:]}") from None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def until(is_so, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def contents(site: pathlib.Path) -> dict[str, bytes]:
    """Every file of a site; what gzip adds to the sitemap is left out."""
    return {
        p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file() and p.suffix != ".gz"
    }


def clean_build(folder: pathlib.Path, address: str) -> dict[str, bytes]:
    """What `mkdocs build` gives in the folder's present state, but for what only a published site has."""
    site = folder.parent / "clean"
    shutil.rmtree(site, ignore_errors=True)
    built = build(folder, "-d", str(site), SITE_URL=address, PUBLISHED="no")
    assert built.returncode == 0, built.stderr[-3000:]
    return contents(site)


@pytest.fixture(scope="module")
def as_it_was(tmp_path_factory):
    """A clean build of the small site as it is before any save, at a server's address: built once."""
    built: dict[str, bytes] = {}
    first = "http://127.0.0.1:12345/"

    def at(server: Serve) -> dict[str, bytes]:
        if not built:
            built.update(clean_build(small_site(tmp_path_factory.mktemp("as_it_was") / "site"), first))
        return {name: content.replace(first.encode(), server.address.encode()) for name, content in built.items()}

    return at


@pytest.fixture
def serve(tmp_path):
    started = []

    def start(change=lambda folder: None) -> Serve:
        folder = small_site(tmp_path / "site")
        change(folder)
        started.append(Serve(folder))
        return started[0]

    yield start
    for server in started:
        server.stop()


def rewrite(path: pathlib.Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1), "utf-8")


class Editor:
    """Random saves; each is followed by others, and what is broken is mended before the comparison."""

    def __init__(self, server: Serve, seed: int):
        self.address, self.folder, self.docs = server.address, server.folder, server.folder / "docs"
        self.random, self.n, self.mends = random.Random(seed), 0, []

    def save(self) -> str:
        self.n += 1
        name = self.random.choice([n for n in dir(self) if n.startswith("do_")])
        getattr(self, name)()
        return name[3:]

    def do_open_a_page(self):
        try:
            urllib.request.urlopen(
                self.address + self.random.choice(["", "guide/one/", "models/gpt/gpt2/", "models/"]), timeout=0.3
            )
        except OSError:  # it has to wait
            pass

    def write(self, path: pathlib.Path, text: str):
        """As editors do: in place, or by a file that takes the place of the old one."""
        if self.random.random() < 0.5:
            path.write_text(text, "utf-8")
        else:
            path.with_name("." + path.name).write_text(text, "utf-8")
            path.with_name("." + path.name).replace(path)

    def page(self) -> pathlib.Path:
        return self.random.choice([p for p in sorted(self.docs.rglob("*.md")) if "includes" not in p.parts])

    def do_edit_a_page(self):
        with self.page().open("a") as f:
            f.write(
                f'\nSaved {self.n}: {{{{ params("{self.random.choice(["gpt2", "llama3-8b", "mixtral-8x7b"])}") }}}}.\n'
            )

    def do_change_a_title(self):
        page = self.docs / "guide/two.md"
        self.write(page, re.sub(r"^# .*", f"# Two {self.n}", page.read_text(), count=1, flags=re.M))

    def do_add_a_page(self):
        (self.docs / f"guide/new{self.n}.md").write_text(f"# New {self.n}\n\n[One](one.md)\n")

    def do_delete_or_rename_a_page(self):
        for page in sorted(self.docs.glob("guide/new*.md"))[:1]:
            self.random.choice([page.unlink, lambda: page.rename(page.with_name(f"newer{self.n}.md"))])()

    def do_edit_a_preset(self):
        path = self.folder / f"macros/presets/{self.random.choice(PRESETS)}.toml"
        self.write(
            path, re.sub(r'^organization = ".*"', f'organization = "Maker {self.n}"', path.read_text(), flags=re.M)
        )

    def do_add_or_delete_a_preset(self):
        path = self.folder / "macros/presets/llama/llama3-8b-again.toml"
        if path.exists():
            path.unlink()
        else:
            self.write(
                path,
                (self.folder / "macros/presets/llama/llama3-8b.toml")
                .read_text()
                .replace('name = "', 'name = "Again ', 1),
            )

    def do_edit_a_view(self):
        path = self.folder / "macros/views/models.py"
        self.write(path, re.sub(r"(, released)\w*( )", rf"\g<1>X{self.n}\2", path.read_text(), count=1))

    def do_edit_a_deep_module(self):
        path = self.folder / "macros/views/html.py"
        self.write(path, re.sub(r'cls="ep-block\w*"', f'cls="ep-block{self.n}"', path.read_text(), count=1))

    def do_edit_the_site_module(self):
        path = self.folder / "macros/site/model_pages.py"
        self.write(path, re.sub(r'"The whole model\w*"', f'"The whole model{self.n}"', path.read_text(), count=1))

    def do_edit_an_architecture(self):
        with (self.folder / "macros/engine/architectures/llama.py").open("a") as f:
            f.write(f"\n# {self.n}\n")

    def do_edit_a_style_sheet(self):
        with (self.docs / "assets/site.css").open("a") as f:
            f.write(f"\n/* {self.n} */\n")

    def do_edit_the_template(self):
        with (self.docs / "overrides/main.html").open("a") as f:
            f.write(f"\n{{# {self.n} #}}\n")

    def do_edit_the_config(self):
        path = self.folder / "mkdocs.yml"
        self.write(
            path, re.sub(r"^site_name: .*", f"site_name: Every Parameter {self.n}", path.read_text(), flags=re.M)
        )

    def do_break(self):
        """A half-written file, mended later."""
        path = self.folder / self.random.choice(
            [
                "macros/views/rounding.py",
                "macros/engine/dims.py",
                "macros/presets/gpt/gpt2.toml",
                "mkdocs.yml",
                "docs/guide/three.md",
            ]
        )
        good = path.read_text("utf-8")
        if str(path) in {str(p) for p, _ in self.mends}:
            return
        self.mends.append((path, good))
        self.write(path, "{{ nothing( }}" if path.suffix == ".md" else good[: len(good) // 2] + '\n"""(')

    def mend(self):
        for path, good in self.mends:
            self.write(path, good)
        self.mends.clear()


LONG = pytest.mark.slow("longer sequences of random saves")


@pytest.mark.parametrize("seed, rounds", [(0, 2), *(pytest.param(seed, 5, marks=LONG) for seed in range(1, 7))])
def test_after_any_saves_the_preview_is_a_clean_build(serve, seed, rounds):
    server = serve()
    editor, told = Editor(server, seed), []
    for _ in range(rounds):
        for _ in range(editor.random.randint(1, 4)):
            told.append(editor.save())
            time.sleep(editor.random.choice([0, 0, 0.3, 1]))
        editor.mend()
        server.becomes_a_clean_build(after=told)


def test_open_pages_come_first_and_nobody_gets_an_old_one(serve):
    """An open tab has the new page while others are still being built; who asks for one of those waits for it."""
    server = serve()
    server.get("models/llama/llama3-8b/")
    for n in range(3):
        path = server.folder / "macros/views/models.py"
        path.write_text(re.sub(r"(, released)\w*( \{)", rf"\1X{n}\2", path.read_text(), count=1))
        server.shows("models/llama/llama3-8b/", f"releasedX{n} ")
        assert f"releasedX{n} " in server.get(
            ("models/gpt/gpt2/", "models/mistral/mixtral-8x7b/", "models/deepseek/deepseek-v3/")[n]
        )
    # A family's page takes long now: the open page does not wait for it, who asks for it does.
    epoch = server.epoch()
    rewrite(
        server.folder / "macros/views/families.py",
        "    slugs = members(family)\n",
        "    __import__('time').sleep(1)\n    slugs = members(family)\n",
    )
    server.epoch(epoch)
    assert "<h1" in server.get("models/llama/llama3-8b/")
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{server.address}models/claude/", timeout=0.5)
    assert "<h1" in server.get("models/claude/")
    # Another page's title is part of the open page's navigation: it is right in the end, and the tab is told.
    epoch = server.epoch()
    rewrite(server.folder / "docs/guide/two.md", "# Two", "# Two and more")
    server.shows("models/llama/llama3-8b/", "Two and more")
    assert server.epoch() > epoch


def test_a_full_disk_stops_nothing(serve):
    """While nothing can be written the last good page is served; at the next save after that, the new one is."""
    server = serve()
    page = server.folder / "docs/guide/three.md"
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    page.write_text(page.read_text() + "\nWhile the disk is full.\n")
    time.sleep(3)
    for path in ("guide/three/", "models/gpt/gpt2/", ""):
        assert "<h1" in server.get(path)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    page.write_text(page.read_text() + "\nThere is room again.\n")
    server.shows("guide/three/", "There is room again.")
    server.becomes_a_clean_build()


@pytest.mark.parametrize("port", ["99999", None], ids=["impossible", "in use"])
def test_an_address_that_cannot_be_had_is_one_line(tmp_path, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{port or taken.getsockname()[1]}"
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", address]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60)
    [line] = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    assert f"nothing can be served at {address}: " in line and "; stop what is there, or give another" in line
    assert done.returncode and "Traceback" not in done.stderr


def test_no_file_makes_the_server_hang(serve, as_it_was):
    """A file that becomes a folder, a page of another encoding, a page of the site that is a draft, a `mkdocs.yml` cut
    in the middle.
    """
    server = serve()
    docs, config = server.folder / "docs", server.folder / "mkdocs.yml"
    good = config.read_text("utf-8")
    (docs / "assets/data").write_text("one")
    (docs / "old.html").write_bytes("<body>caf\xe9</body>".encode("latin-1"))
    config.write_text(good + "draft_docs: |\n  guide/three.md\n", "utf-8")
    server.shows("guide/three/", "DRAFT")
    (docs / "assets/data").unlink()
    (docs / "assets/data").mkdir()
    (docs / "assets/data/x.txt").write_text("two")
    until(lambda: server.get("assets/data/x.txt") == "two", 20)
    config.write_text(good[: good.index("hooks:")], "utf-8")
    server.shows("guide/two/", "mkdocs.yml: hooks: macros/site/hooks.py is missing")
    config.write_text(good, "utf-8")
    shutil.rmtree(docs / "assets/data")
    (docs / "old.html").unlink()
    server.becomes(as_it_was(server))


def test_a_page_that_is_back_is_seen_by_its_tab(serve):
    """Pages that are not found reload like any other, in whatever spelling they were asked for."""
    server = serve()
    page = server.folder / "docs/guide/\u00fcber uns.md"
    assert "livereload(" in server.get("guide/%C3%BCber%20uns/")
    page.write_text("# Here\n\n{{ model_intro('gpt2') }}\n", "utf-8")
    server.shows("guide/%C3%BCber%20uns/", "Here")
    for n in range(3):
        epoch = server.epoch()
        path = server.folder / "macros/views/models.py"
        path.write_text(re.sub(r"(, released)\w*( \{)", rf"\1X{n}\2", path.read_text(), count=1))
        server.epoch(epoch)
        assert f"releasedX{n} " in server.get("guide/%C3%BCber%20uns/")


def test_what_is_written_back_during_a_build_is_not_kept(serve, as_it_was):
    """A preset that is wrong for a moment, while everything is read anew."""
    server = serve()
    preset = server.folder / "macros/presets/gpt/gpt2.toml"
    good = preset.read_text("utf-8")
    for n in range(4):
        with (server.folder / "macros/engine/dims.py").open("a") as f:
            f.write(f"\n# {n}\n")
        time.sleep(0.15 + 0.1 * n)
        preset.write_text(re.sub('organization = ".*"', 'organization = "Nobody"', good), "utf-8")
        time.sleep(0.2)
        preset.write_text(good, "utf-8")
    server.becomes(as_it_was(server))


BROKEN = {
    "macro call": (
        "docs/guide/one.md",
        '"d_model"',
        '"d_modle"',
        "guide/one/",
        "docs/guide/one.md:5: value('llama3-8b', 'd_modle'): llama3-8b has no 'd_modle'; did you mean \"d_model\"?",
    ),
    "braces": ("docs/guide/one.md", '"d_model") }}', '"d_model" }}', "guide/one/", "docs/guide/one.md:5: "),
    "preset's total": (
        "macros/presets/llama/llama3-8b.toml",
        "hidden_size = 4096",
        "hidden_size = 4608",
        "models/llama/llama3-8b/",
        "macros/presets/llama/llama3-8b.toml: ",
    ),
    "preset half written": (
        "macros/presets/llama/llama3-8b.toml",
        "[config]",
        "[config",
        "models/llama/llama3-8b/",
        "macros/presets/llama/llama3-8b.toml: broken TOML: ",
    ),
    "syntax of a module": (
        "macros/views/tables.py",
        "def copies(",
        "def copies((",
        "guide/one/",
        "macros/views/tables.py:",
    ),
    "syntax of a module that no page uses": (
        "macros/cli/skeleton.py",
        "from __future__ import annotations",
        "from __future__ import (",
        "guide/one/",
        "macros/cli/skeleton.py:",
    ),
    "import of a module": (
        "macros/counting/parameters.py",
        "from ..engine.dims import ",
        "from ..engine.dims import Polly, ",
        "guide/one/",
        "macros/counting/parameters.py:",
    ),
    "exception in a macro": (
        "macros/views/tables.py",
        "    is_stacked = any(",
        "    1 / 0\n    is_stacked = any(",
        "guide/one/",
        "ZeroDivisionError",
    ),
    "exception in the site": (
        "macros/site/model_pages.py",
        "    wrong = problems()\n",
        "    wrong = problems()\n    1 / 0\n",
        "guide/one/",
        "macros/site/model_pages.py:",
    ),
    "config": ("mkdocs.yml", "nav:\n", "nav: [\n", "guide/one/", "mkdocs.yml"),
    "config's setting": ("mkdocs.yml", "site_name:", "sight_name:", "guide/one/", "mkdocs.yml"),
    "the preview itself": (
        "macros/site/preview/pages.py",
        "import jinja2\n",
        "import jinja3\n",
        "guide/one/",
        "macros/site/preview/pages.py: ",
    ),
}


def test_broken_saves_show_their_line_and_mend(serve, as_it_was):
    server = serve()
    for what, (name, old, new, page, line) in BROKEN.items():
        path = server.folder / name
        good = path.read_text("utf-8")
        length = len(server.log.read_text())
        rewrite(path, old, new)
        server.shows(page, line)
        log = server.log.read_text()[length:]
        told = [x for x in log.splitlines() if x.startswith(("WARNING", "ERROR")) and " code 404" not in x]
        assert line in told[-1] and len(told) == (2 if what == "config's setting" else 1) and "Traceback" not in log, (
            what,
            log,
        )
        elsewhere = server.get("guide/two/")
        assert "<h1" in elsewhere and line in html.unescape(elsewhere), (
            what
        )  # the rest can be read, and any open tab has the line
        path.write_text(good, "utf-8")
        until(
            lambda: line not in html.unescape(server.get(page)) and line not in html.unescape(server.get("guide/two/")),
            30,
        )
    assert server.process.poll() is None
    server.becomes(as_it_was(server))


MORE = pytest.mark.slow("more ways to break the first build")


@pytest.mark.parametrize(
    "what",
    [
        "syntax of a module",
        "preset's total",
        pytest.param("preset half written", marks=MORE),
        pytest.param("macro call", marks=MORE),
        pytest.param("exception in the site", marks=MORE),
    ],
)
def test_a_broken_first_build_recovers(serve, as_it_was, what):
    name, old, new, page, line = BROKEN[what]
    server = serve(lambda folder: rewrite(folder / name, old, new))
    server.shows(page, line)
    rewrite(server.folder / name, new, old)
    server.becomes(as_it_was(server))


def test_the_preview_waits_for_its_own_modules(serve):
    """Wrong at the very first start: there is no server yet that could show it, so the terminal does, and all begins at
    the mend.
    """
    told = []

    def mend(folder):
        until(lambda: "pages.py: SyntaxError" in (folder.parent / "serve.log").read_text(), 30)
        told.append(True)
        rewrite(folder / "macros/site/preview/pages.py", "from contextlib import (", "from contextlib import ")

    def break_it(folder):
        (folder.parent / "serve.log").touch()
        rewrite(folder / "macros/site/preview/pages.py", "from contextlib import ", "from contextlib import (")
        threading.Thread(target=mend, args=(folder,)).start()

    server = serve(break_it)
    assert told and "<h1" in server.get("guide/two/")


def test_an_edit_of_the_preview_starts_it_again(serve):
    server = serve()
    rewrite(server.folder / "macros/site/preview/server.py", "Not built", "Not yet built")
    until(lambda: "starts again" in server.log.read_text(), 20)
    until(lambda: server.epoch() and "<h1" in server.get("guide/two/"), 30)


def test_what_is_remembered_goes_with_what_it_used():
    calls = []

    @remember.remembered
    def inner(name):
        calls.append(name)
        remember.use("preset", name)
        return name

    @remember.remembered
    def outer(name):
        calls.append(f"outer {name}")
        return inner(name) * 2

    assert outer("a") == outer("a") == "aa" and calls == ["outer a", "a"]
    with remember.recording() as used:
        outer("a")
    assert used == {("preset", "a")}, "a remembered result passes on what it used"
    remember.forget({("preset", "b")})
    assert outer("a") and len(calls) == 2
    remember.forget({("preset", "a")})
    assert outer("a") and len(calls) == 4


def test_a_module_takes_those_that_import_it_along():
    wanted = {
        "macros.a": set(),
        "macros.b": {"macros.a"},
        "macros.c": {"macros.b"},
        "macros.d": set(),
        "macros.all": {"macros.kinds."},
        "macros.kinds.x": set(),
    }
    assert modules.dependants({"macros.a"}, wanted) == {"macros.a", "macros.b", "macros.c"}
    assert modules.dependants({"macros.kinds.x"}, wanted) == {"macros.kinds.x", "macros.all"}


def test_nothing_else_keeps_what_depends_on_presets():
    """`lru_cache` would hide from the preview what a result was made from: it is for functions of plain values."""
    plain = {
        "inert",
        "_is_free",
        "of_weight",
        "math",
        "drawing",
        "mathml",
        "_inert",
        "var",
        "_shape",
        "_all_symbols",
        "notation_table",
        "expression",
        "config_keys",
        "_imported",
        "terms_table",
        "text_width",
        "lay_out",
        "broken",
        "_level",
    }
    found = {
        m[1]
        for p in (ROOT / "macros/views").glob("*.py")
        for m in re.finditer(r"@(?:lru_cache|cache)\b.*\ndef (\w+)", p.read_text("utf-8"))
    }
    assert found <= plain | {n for n in found if n.startswith("_in_")}, found - plain
