"""The live preview: whatever is saved, in whatever order, it serves what a clean build gives; a broken save is one line
and mends.
"""

import functools
import html
import logging
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from copies import ROOT, environment, small_site
from fuzz.saves import Serve, after_saves, clean_build, until
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from macros.cache import memory
from macros.cache.memory import Packed
from macros.catalogue.preset_schema import schema_text
from macros.site.editors import is_an_editors
from macros.site.mkdocs.preview import lines, modules
from macros.site.mkdocs.preview import server as preview_server
from macros.site.mkdocs.preview.lines import Once
from macros.site.mkdocs.preview.pages import OURS, Preview
from macros.site.mkdocs.preview.requests import Hosts, path_of
from macros.site.mkdocs.preview.server import GAP, PATIENCE, Served

pytestmark = pytest.mark.processes


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


SOME = pytest.mark.share(9, of="previews of their own")
LONG = pytest.mark.slow("longer sequences of random saves; python -m tests.fuzz makes as many as one likes")
RARE = pytest.mark.slow("a preview of its own for what happens rarely"), SOME


def marked(marks):
    """A test with all of these marks."""
    return lambda function: functools.reduce(lambda so_far, mark: mark(so_far), marks, function)


@SOME
@pytest.mark.parametrize("seed, rounds", [(0, 1), *(pytest.param(seed, 3, marks=LONG) for seed in (1, 2))])
def test_after_any_saves_the_preview_is_a_clean_build(serve, seed, rounds):
    after_saves(serve(), seed, rounds)


@SOME
def test_open_pages_come_first_and_nobody_gets_an_old_one(serve):
    """An open tab has the new page while others are still being built; who asks for one of those waits for it."""
    server = serve()
    server.get("models/llama/llama3-8b/")
    for n in range(3):
        path = server.folder / "macros/views/models/model_page.py"
        path.write_text(re.sub(r"(, released)\w*( \{)", rf"\1X{n}\2", path.read_text(), count=1))
        server.shows("models/llama/llama3-8b/", f"releasedX{n} ")
        assert f"releasedX{n} " in server.get(
            ("models/gpt/gpt2/", "models/mistral/mixtral-8x7b/", "models/deepseek/deepseek-v3/")[n]
        )
    # A family's page takes long now: the open page does not wait for it, who asks for it does.
    epoch = server.epoch()
    rewrite(
        server.folder / "macros/views/models/families.py",
        "    slugs = family_members(family)\n",
        "    __import__('time').sleep(1)\n    slugs = family_members(family)\n",
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
    # Scripts and styles lie where a published site has them, in one sheet that a save changes.
    own = set(re.findall(r'(?:href|src)="[./]*(assets[^"]*\.(?:css|m?js|woff2))"', server.get("")))
    assert own and all(path.startswith("assets-preview/") for path in own)
    with open(server.folder / "docs/assets/site.css", "a", encoding="utf-8") as file:
        file.write(".ep-saved { top: 0 }\n")
    until(lambda: ".ep-saved{top:0}" in server.get("assets-preview/styles.css"), 20)
    assert server.get("assets/site.css").startswith("404")


@SOME
def test_a_page_that_is_asked_for_comes_before_all_others(serve):
    """A family's page does not end until a file is there: who asks for another page at the very start gets it."""

    def endless(folder):
        rewrite(
            folder / "macros/views/models/families.py",
            "    slugs = family_members(family)\n",
            "    import pathlib, time\n    pathlib.Path('begun').touch()\n"
            "    while not pathlib.Path('go').exists():\n"
            "        time.sleep(0.01)\n        presets.preset('gpt2')\n    slugs = family_members(family)\n",
        )

    server = serve(endless)
    for page in ("models/llama/llama3-8b/", "guide/two/", "models/gpt/gpt2/"):
        assert "<h1" in server.get(page)
    until((server.folder / "begun").exists, 30)
    rewrite(server.folder / "docs/guide/two.md", "# Two", "# Two and more")
    server.shows("guide/two/", "Two and more")
    assert "<h1" in server.get("guide/one/") and server.get("guide/none/").startswith("404")
    assert server.get("guide/cat.png").startswith("404"), "nothing gives this image, so nobody waits for it"
    page = server.folder / "docs/guide/three.md"
    text = page.read_text("utf-8")
    assert "Prose only" in server.get("guide/three/")
    page.unlink()
    until(lambda: server.get("guide/three/").startswith("404"), 10)
    page.write_text(text, "utf-8")
    server.shows("guide/three/", "Prose only")
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{server.address}models/claude/", timeout=0.5)
    (server.folder / "go").touch()
    assert "<h1" in server.get("models/claude/")
    server.becomes_a_clean_build()
    schema = server.folder / ".cache/preset.schema.json"
    until(lambda: schema.is_file() and schema.read_text("utf-8") == schema_text(), 10)
    said = server.log.read_text()
    for line in ("Building documentation", "Documentation built in"):
        assert said.count(line) <= 4, "one at the start, one for each save"


@SOME
def test_a_save_has_no_other_page_made_again_and_its_tab_told_once(serve):
    """Files that only a build of all pages generates do not come and go, nor do metadata change their kind."""

    def noting(folder):
        rewrite(
            folder / "macros/site/page_macros.py",
            "            result = function(",
            "            open('calls', 'a').write('.')\n            result = function(",
        )
        rewrite(folder / "docs/guide/three.md", "title: Three", "title: Three & <i>more")
        # Who looks for what the system did not tell, looks whenever a save is being told.
        rewrite(folder / "macros/site/mkdocs/preview/server.py", "LOOK = 2 ", "LOOK = 0.1 ")

    server = serve(noting)
    calls = server.folder / "calls"
    assert "<h1" in server.get("guide/one/")
    server.get("data/v1/gpt2.json")  # all pages are there
    for n in range(2):
        before, epoch = calls.stat().st_size, server.epoch()
        rewrite(server.folder / "docs/guide/two.md", "# Two", f"# Two {n}")
        server.shows("guide/two/", f"Two {n}")
        server.epoch(epoch)
        server.get("data/v1/gpt2.json")
        assert calls.stat().st_size == before + 1  # its own
    server.becomes_a_clean_build()
    server.get("models/llama/llama3-8b/")
    epoch = server.epoch()
    rewrite(server.folder / "macros/presets/llama/llama3-8b.toml", '"Meta"', '"Another"')
    epoch = server.epoch(epoch)
    server.get("data/v1/gpt2.json")
    time.sleep(1)
    assert server.epoch() == epoch and "by Another" in server.get("models/llama/llama3-8b/")


@SOME
def test_a_page_whose_build_failed_between_two_steps_is_read_again(serve):
    """Its Markdown was read, and the next step failed: what the page gave before is not taken for what it gives now."""

    def with_a_hook(folder):
        rewrite(folder / "mkdocs.yml", "hooks:\n", "hooks:\n  - fails.py\n")
        (folder / "fails.py").write_text(
            "import pathlib\n"
            "def on_page_content(html, page, config, files):\n"
            "    if pathlib.Path('fails').exists() and page.file.src_uri == 'guide/two.md':\n"
            "        raise ValueError('not now')\n"
        )

    server = serve(with_a_hook)
    page, fails = server.folder / "docs/guide/two.md", server.folder / "fails"
    server.get("data/v1/gpt2.json")  # all pages are there
    server.get("guide/two/")
    fails.touch()
    rewrite(page, "# Two", "# Twice")
    server.shows("guide/two/", "not now")
    fails.unlink()
    rewrite(server.folder / "docs/guide/one.md", "# ", "# Once: ")
    server.shows("guide/two/", "Twice")
    server.becomes_a_clean_build()


@pytest.mark.parametrize(
    "name, is_one",
    [
        *((name, True) for name in (".#page.md", "#page.md#", "page.md~", ".page.md.swp", "guide/page.md.swo", "4913")),
        *((name, True) for name in ("page.md___jb_tmp___", "a/.hidden/page.md", "#a/page.md", "~$page.md", "page.tmp")),
        *((name, False) for name in ("page.md", "a/c#.md", "4913.md", "guide/a~b.md", "page.tmp.md", "swap.swf", "+a")),
    ],
)
def test_which_files_are_editors_own(name, is_one):
    assert is_an_editors(name) == is_one


@pytest.mark.parametrize(
    "host, is_taken",
    [
        *(
            (host, True)
            for host in ("localhost", "LOCALHOST.:8000", "a.localhost", "127.0.0.1:1", "[::1]:80", "10.0.0.7")
        ),
        *((host, True) for host in (None, "[fe80::1%eth0]", "bound", "one.example", "a.b.tunnel.example:443")),
        *((host, False) for host in ("evil.example", "localhost.evil.example", "", "x y", "tunnel.example", "127.1")),
        *(
            (host, False)
            for host in ("localhost,evil.example", "one.example.evil", "a@localhost", "[::1].evil", "\xff")
        ),
    ],
)
def test_the_preview_answers_by_its_own_names_alone(host, is_taken):
    """A page of another site whose name leads here gets nothing (DNS rebinding)."""
    asked, answers = [], []
    server = SimpleNamespace(
        hosts=hosts("bound", "one.example .Tunnel.example"),
        server=SimpleNamespace(mount_path="/"),
        ask=lambda environ: asked.append(environ["PATH_INFO"]) or (None, None, [b"the page"]),
    )
    environ = {"PATH_INFO": "/\0"} | ({} if host is None else {"HTTP_HOST": host})
    body = b"".join(Served.answer(server, environ, lambda status, headers: answers.append(status)))
    if is_taken:
        assert answers == ["404 Not Found"] and asked == ["/404.html"] and body == b"the page"
    else:
        assert answers == ["403 Forbidden"] and not asked
        assert body.startswith(f"the preview does not answer as {host!a}; ".encode()) and body.count(b"\n") == 1


def hosts(bound, said):
    return Hosts(SimpleNamespace(dev_addr=SimpleNamespace(host=bound), extra={"preview_hosts": said}))


def test_names_that_the_preview_is_told():
    assert hosts("x", "*").refusal("any.example") is None and hosts("x", ["a.b"]).refusal("a.b:1") is None
    assert hosts("x", None).refusal("a.b") and hosts("x", "").refusal("a.b")
    for wrong in (3, ["a", 3], "a.b:80", "https://a.b", {"a": 1}):
        with pytest.raises(PluginError, match="^mkdocs.yml: extra.preview_hosts = .*: expected names of hosts; write"):
            hosts("x", wrong)


@pytest.mark.parametrize("path", ["/\0", "/a\0/", "/\xff\xfe", "/\xed\xa0\x80/", "/a\r\n", "/\x7f"])
def test_what_is_no_address_is_no_page(path):
    assert path_of({"PATH_INFO": path}) is None and path_of({"PATH_INFO": "/\xc3\xbc/"}) == "/\u00fc/"


def test_a_packed_text_is_the_text():
    texts = ["", "a", "é − \U0001d400 \udc80", "<p>" * 100_000]
    assert [Packed(text).text() for text in texts] == texts
    assert [[Packed(a) == Packed(b) for a in texts] for b in texts] == [[a == b for a in texts] for b in texts]
    assert len(Packed(texts[-1]).content) < 10_000


@marked(RARE)
def test_a_full_disk_stops_nothing(serve):
    """While nothing can be written the last good page is served; at the next save after that, the new one is."""
    server = serve()
    page = server.folder / "docs/guide/three.md"
    server.get("data/v1/gpt2.json")  # all pages are there
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
    assert (
        f"nothing can be served at {address}: " in line and "; stop the program that uses it, or choose another" in line
    )
    assert done.returncode and "Traceback" not in done.stderr


@marked(RARE)
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
    server.shows("guide/two/", "mkdocs.yml: hooks: macros/site/mkdocs/hooks.py is missing")
    config.write_text(good, "utf-8")
    shutil.rmtree(docs / "assets/data")
    (docs / "old.html").unlink()
    server.becomes(as_it_was(server))


@marked(RARE)
def test_a_page_that_is_back_is_seen_by_its_tab(serve):
    """Pages that are not found reload like any other, in whatever spelling they were asked for."""
    server = serve()
    page = server.folder / "docs/guide/\u00fcber uns.md"
    assert "livereload(" in server.get("guide/%C3%BCber%20uns/")
    page.write_text("# Here\n\n{{ model_intro('gpt2') }}\n", "utf-8")
    server.shows("guide/%C3%BCber%20uns/", "Here")
    for n in range(3):
        epoch = server.epoch()
        path = server.folder / "macros/views/models/model_page.py"
        path.write_text(re.sub(r"(, released)\w*( \{)", rf"\1X{n}\2", path.read_text(), count=1))
        server.epoch(epoch)
        assert f"releasedX{n} " in server.get("guide/%C3%BCber%20uns/")


@marked(RARE)
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
    "braces": (
        "docs/guide/one.md",
        '"d_model") }}',
        '"d_model" }}',
        "guide/one/",
        "docs/guide/one.md:5: a call is not closed: ) is missing",
    ),
    "tag": (
        "docs/guide/one.md",
        "# One\n",
        "# One\n\n{% if x %}\n",
        "guide/one/",
        "docs/guide/one.md:3: {% if %} is not closed; add {% endif %} behind what it is for",
    ),
    "metadata": (
        "docs/guide/one.md",
        "# One\n",
        "---\ntitle: One: two\n---\n\n# One\n",
        "guide/one/",
        "docs/guide/one.md:2: the metadata above the page are not YAML: mapping values are not allowed here; write a ",
    ),
    "link": (
        "docs/index.md",
        "(guide/one.md#a-section)",
        "(guide/none.md)",
        "guide/one/",
        "docs/index.md:3: the link guide/none.md leads nowhere: the target is not found among",
    ),
    "anchor": (
        "docs/index.md",
        "#a-section)",
        "#no-section)",
        "",
        "docs/index.md:3: the link guide/one.md#no-section leads nowhere: ",
    ),
    "image": (
        "docs/guide/two.md",
        "# Two",
        "# Two\n\n![A cat](cat.png)",
        "guide/two/",
        "docs/guide/two.md:3: the link cat.png leads nowhere: ",
    ),
    "page that nothing leads to": (
        "mkdocs.yml",
        "  - guide/two.md\n",
        "",
        "guide/one/",
        "mkdocs.yml: nav: docs/guide/two.md: nothing leads there; add it, or name it in not_in_nav",
    ),
    "old word for a step": (
        "docs/guide/two.md",
        "# Two",
        '# Two\n\n{{ matmul("gpt2", "mix") }}',
        "guide/two/",
        'docs/guide/two.md:3: matmul: what = "mix" is now called "weighted_sum"; the old name goes with version ',
    ),
    "formula": (
        "docs/guide/one.md",
        "$L \\cdot D$",
        "$L \\cdt D$",
        "guide/one/",
        "docs/guide/one.md:5: the formula $L \\cdt D$ is not LaTeX",
    ),
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
        "macros/views/tables/parameters.py",
        "def copies(",
        "def copies((",
        "guide/one/",
        "macros/views/tables/parameters.py:",
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
        "macros/views/tables/parameters.py",
        "    is_stacked = any(",
        "    1 / 0\n    is_stacked = any(",
        "guide/one/",
        "ZeroDivisionError",
    ),
    "exception in the site": (
        "macros/site/model_pages.py",
        "    paths = presets.paths()\n",
        "    paths = presets.paths()\n    1 / 0\n",
        "guide/one/",
        "macros/site/model_pages.py:",
    ),
    "config": ("mkdocs.yml", "nav:\n", "nav: [\n", "guide/one/", "mkdocs.yml"),
    "config's setting": (
        "mkdocs.yml",
        "site_name:",
        "sight_name:",
        "guide/one/",
        'mkdocs.yml:1: sight_name: there is no such setting; did you mean "site_name"?',
    ),
    "config's setting that need not be there": (
        "mkdocs.yml",
        "\ntheme:",
        "\ntheem:",
        "guide/one/",
        'theem: there is no such setting; did you mean "theme"?',
    ),
    "the preview itself": (
        "macros/site/mkdocs/preview/pages.py",
        "import jinja2\n",
        "import jinja3\n",
        "guide/one/",
        "macros/site/mkdocs/preview/pages.py: ",
    ),
}


COMMON = "macro call", "tag", "metadata", "link", "formula", "preset's total", "syntax of a module", "config"


@SOME
@pytest.mark.parametrize(
    "chosen",
    [COMMON, pytest.param([what for what in BROKEN if what not in COMMON], marks=RARE)],
    ids=["common", "rare"],
)
def test_broken_saves_show_their_line_and_mend(serve, as_it_was, chosen):
    server = serve()
    for what in chosen:
        name, old, new, page, line = BROKEN[what]
        path = server.folder / name
        good = path.read_text("utf-8")
        length = len(server.log.read_text())
        rewrite(path, old, new)
        server.shows(page, line)
        log = server.log.read_text()[length:]
        told = [x for x in log.splitlines() if x.startswith(("WARNING", "ERROR")) and " code 404" not in x]
        assert len(told) == 1 and line in told[0] and "Traceback" not in log, (what, log)
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


@SOME
@pytest.mark.parametrize(
    "what",
    [
        "preset's total",
        pytest.param("syntax of a module", marks=RARE),
        pytest.param("preset half written", marks=RARE),
        pytest.param("macro call", marks=RARE),
        pytest.param("exception in the site", marks=RARE),
    ],
)
def test_a_broken_first_build_recovers(serve, as_it_was, what):
    name, old, new, page, line = BROKEN[what]
    server = serve(lambda folder: rewrite(folder / name, old, new))
    server.shows(page, line)
    rewrite(server.folder / name, new, old)
    server.becomes(as_it_was(server))


@marked(RARE)
def test_the_preview_waits_for_its_own_modules(serve):
    """Wrong at the very first start: there is no server yet that could show it, so the terminal does, and all begins at
    the mend.
    """
    told = []

    def mend(folder):
        until(lambda: "pages.py: SyntaxError" in (folder.parent / "serve.log").read_text(), 30)
        told.append(True)
        rewrite(folder / "macros/site/mkdocs/preview/pages.py", "from contextlib import (", "from contextlib import ")

    def break_it(folder):
        (folder.parent / "serve.log").touch()
        rewrite(folder / "macros/site/mkdocs/preview/pages.py", "from contextlib import ", "from contextlib import (")
        threading.Thread(target=mend, args=(folder,)).start()

    server = serve(break_it)
    assert told and "<h1" in server.get("guide/two/")


@marked(RARE)
def test_a_save_that_the_system_does_not_tell_is_found(serve):
    """As on a drive of another machine."""
    server = serve(
        lambda folder: rewrite(folder / "macros/site/mkdocs/preview/server.py", "event_filter=SAVES", "event_filter=[]")
    )
    server.get("guide/two/")
    rewrite(server.folder / "docs/guide/two.md", "# Two", "# Two and more")
    server.shows("guide/two/", "Two and more")


@marked(RARE)
def test_an_edit_of_the_preview_starts_it_again(serve):
    """Also one before the first build reads the files, for which a busy machine takes seconds."""

    def late(folder):
        rewrite(
            folder / "macros/site/mkdocs/preview/pages.py",
            "        self.inputs.begin(state)\n",
            "        while not os.path.exists('go'):\n            os.sched_yield()\n        self.inputs.begin(state)\n",
        )

    server = serve(late)
    rewrite(server.folder / "macros/site/mkdocs/preview/server.py", "Not built", "Not yet built")
    (server.folder / "go").touch()
    until(lambda: "the server restarts" in server.log.read_text(), 30)
    until(lambda: server.epoch() and "<h1" in server.get("guide/two/"), 120)


def test_what_a_build_tells_while_it_is_ended_is_of_the_save_before():
    """The other pages are being built, with a mistake that was just mended: its line does not stay on the pages."""
    served, at_build = Served.__new__(Served), []
    served.preview = SimpleNamespace(inputs=SimpleNamespace(read=lambda: {"mended": 1}, end=int), is_abandoned=False)
    served.state, served.is_cautious, served.open, served.once, served.told = {}, False, {"": None}, Once(), "an error"
    served.config_file = "mkdocs.yml"
    told = logging.LogRecord("mkdocs.plugins.macros", logging.ERROR, "", 0, "docs/a.md:1: wrong", (), None)
    served.stop = lambda: served.once.filter(told)
    served.build = lambda first, state: at_build.append((list(served.once.errors), served.told))
    served.tidy_up = lambda: None
    served.rebuild()
    assert at_build == [([], "")]
    # And what it told of the save that ends it is told once, and stands on the pages.
    assert not served.once.filter(told) and list(served.once.errors.values()) == ["docs/a.md:1: wrong"]


def test_a_save_before_any_page_was_opened_is_built():
    """The build of the other pages alone would wait for it, and whoever opens a page would wait for that build."""
    served, builds = Served.__new__(Served), []
    served.preview = SimpleNamespace(inputs=SimpleNamespace(read=lambda: {"saved": 1}), is_abandoned=False)
    served.state, served.is_cautious, served.open, served.once, served.told = {}, False, {}, Once(), ""
    served.config_file = "mkdocs.yml"
    served.stop = served.tidy_up = lambda: None
    served.build = lambda first, state: builds.append(first) or True
    served.build_in_background = lambda: builds.append(None)
    served.rebuild()
    assert builds == [frozenset(), None]


def test_all_objects_are_looked_at_only_while_nobody_saves(monkeypatch):
    """It takes most of a second, for which a save would wait."""
    looked = []
    done = SimpleNamespace(unfreeze=int, collect=lambda: looked.append(1), freeze=int)
    monkeypatch.setattr(preview_server, "gc", done)
    monkeypatch.setattr(preview_server, "memory", SimpleNamespace(release=int))
    served = Served.__new__(Served)
    served.preview, served.untidy = SimpleNamespace(is_imported_anew=False), preview_server.MANY - 1
    served.rest = SimpleNamespace(is_alive=lambda: True)
    served.tidy_all()
    served.clear_up()
    assert not looked
    served.rest = None  # seconds after the last save, with all pages there
    served.clear_up()
    assert looked == [1] and served.untidy == 0
    served.untidy = preview_server.MANY  # somebody saves all the time
    served.tidy_all()
    assert looked == [1, 1]


def test_the_other_pages_wait_while_a_tab_loads():
    served = Served.__new__(Served)
    served.preview = SimpleNamespace(is_abandoned=False)
    served.is_interruptible, served.is_looking, served.rest = True, False, threading.current_thread()
    served.loading = served.told_at = start = time.monotonic()
    served.give_way()
    assert GAP <= time.monotonic() - start < PATIENCE
    served.told_at = 0.0  # it was told long ago: whoever asks all the time stops nothing
    served.loading = start = time.monotonic()
    served.give_way()
    assert time.monotonic() - start < GAP


def test_a_file_that_came_and_went_leaves_no_error():
    """A build may have read it: one that fails is followed by another, whether it had failed by then or not."""
    served, builds = Served.__new__(Served), []
    served.preview = SimpleNamespace(inputs=SimpleNamespace(read=dict, end=int), is_abandoned=False)
    served.state, served.told, served.is_cautious, served.is_in_doubt, served.open = {}, "", False, False, {"": None}
    served.stop = served.tidy_up = lambda: None
    served.build = lambda first, state: builds.append(first) or False
    served.rebuild()
    assert not builds and served.is_in_doubt
    served.told = "unknown model"
    served.rebuild()
    assert builds == [{""}]


def test_the_build_of_the_other_pages_tells_nothing_of_a_save_that_was_not_noticed_yet():
    """It reads what was saved a moment ago; the build for that save tells it, and once."""
    served, files = Served.__new__(Served), {"docs/a.md": 1}
    served.preview = SimpleNamespace(inputs=SimpleNamespace(read=lambda: dict(files)))
    served.state, served.rest, served.once = dict(files), threading.current_thread(), Once("", served.is_overtaken)
    told = logging.LogRecord("mkdocs.plugins.macros", logging.ERROR, "", 0, "docs/a.md:1: wrong", (), None)
    files["docs/a.md"] = 2
    assert not served.once.filter(told) and not served.once.errors
    served.rest = None
    assert served.once.filter(told) and not served.once.filter(told) and len(served.once.errors) == 1
    served.once.lines.clear()
    served.rest, served.state = threading.current_thread(), dict(files)
    assert served.once.filter(told), "what is wrong on the other pages is told"


def test_a_page_that_is_being_written_is_told_once():
    """Not at each of its saves: until the settings or the pages that nothing leads to change."""
    once = Once("docs")

    def told(*names: str) -> bool:
        said = lines.OMITTED + "".join(f"\n  - {name}" for name in names)
        return once.filter(logging.LogRecord("mkdocs.structure.nav", logging.WARNING, "", 0, said, (), None))

    assert told("new.md") and list(once.errors) == [
        "mkdocs.yml: nav: docs/new.md: nothing leads there; add it, or name it in not_in_nav"
    ]
    assert not told("new.md"), "by the build of all pages"
    for _ in range(2):
        once.lines.clear()
        once.errors.clear()
        assert not told("new.md") and not once.errors
    once.lines.clear()
    once.is_overtaken = lambda: True
    assert not told("new.md", "newer.md")
    once.is_overtaken = lambda: False
    assert told("new.md", "newer.md") and not told("new.md", "newer.md"), "by the next build, which was told nothing"


def test_a_setting_that_does_not_exist_has_its_line_and_the_one_that_is_meant():
    """In a build and in the preview."""

    def said(name: str) -> str:
        text = f"Config value '{name}': Unrecognised configuration name: {name}"
        record = logging.LogRecord("mkdocs.config", logging.WARNING, "", 0, text, (), None)
        assert lines.Settings().filter(record)
        return record.getMessage()

    number = (ROOT / "mkdocs.yml").read_text("utf-8").splitlines().index("hooks:") + 1
    assert said("hooks") == f'mkdocs.yml:{number}: hooks: there is no such setting; did you mean "hooks"?'
    assert said("theem") == 'mkdocs.yml: theem: there is no such setting; did you mean "theme"?'
    assert said("qqqq") == "mkdocs.yml: qqqq: there is no such setting; delete it, or correct its name"


def test_a_setting_that_cannot_be_read_is_told_without_a_traceback():
    why = "Failed to load extension 'tables'.\n  File 'x', line 1, in f\n    f()\nKeyError: 'x'"
    told = lines.wrong_setting([f"Config value 'markdown_extensions': {why}"])
    assert told == "mkdocs.yml: markdown_extensions: Failed to load extension 'tables'. KeyError: 'x'; mend the setting"
    told = lines.wrong_setting(["Config value 'site_name': Required configuration not provided."])
    assert told == "mkdocs.yml: site_name: Required configuration not provided; mend the setting"


def test_what_is_remembered_goes_with_what_it_used():
    calls = []

    @memory.memoized
    def inner(name):
        calls.append(name)
        memory.depends_on("preset", name)
        return name

    @memory.memoized
    def outer(name):
        calls.append(f"outer {name}")
        return inner(name) * 2

    assert outer("a") == outer("a") == "aa" and calls == ["outer a", "a"]
    with memory.tracking() as used:
        outer("a")
    assert used == {("preset", "a")}, "a remembered result passes on what it used"
    memory.invalidate({("preset", "b")})
    assert outer("a") and len(calls) == 2
    memory.invalidate({("preset", "a")})
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


@SOME
def test_edited_words_are_shown_and_wrong_ones_are_a_line(serve, as_it_was):
    """Who mends a wrong one has the site as it was."""
    server = serve()
    assert "Query projection" in server.get("models/llama/llama3-8b/")
    path, line = server.folder / "macros/views/words/weights.toml", "macros/views/words/weights.toml: weight q_proj."
    good = path.read_text("utf-8")
    rewrite(path, 'title = "Query projection"', 'title = "Ask the question"')
    server.shows("models/llama/llama3-8b/", "Ask the question")
    rewrite(path, 'title = "Ask', 'tittle = "Ask')
    server.shows("models/llama/llama3-8b/", line)
    log = server.log.read_text()
    assert f'ERROR   -  {line}tittle: unknown key; did you mean "title"?\n' in log and "Traceback" not in log, log
    path.write_text(good, "utf-8")
    until(lambda: line not in html.unescape(server.get("models/llama/llama3-8b/")), 30)
    server.becomes(as_it_was(server))


def test_a_data_file_is_read_by_modules_beside_it_alone():
    """So that these, with those that import them, are all that an edit of it concerns."""
    package = ROOT / "macros"
    data = [path for path in package.rglob("*.toml") if not path.is_relative_to(package / "presets")]
    assert package / "views/words/weights.toml" in data
    sources = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    for path in data:
        naming = {module for module, source in sources.items() if f'"{path.name}"' in source}
        assert modules.readers(path) == naming != set(), path


def test_a_save_waits_for_no_data_file(tmp_path):
    """Those of all models take many seconds, and come with the build of all pages."""
    preview, copied = Preview(), []
    preview.first, preview.all = frozenset(), []
    preview.served = SimpleNamespace(has=lambda path: path == "there.css")
    files = [
        File(name, str(tmp_path), str(tmp_path), True) for name in ("new.css", "there.css", "theirs.json", "gpt2.json")
    ]
    for file in files:
        file.copy_file = functools.partial(copied.append, file.src_uri)
    files[2].generated_by, files[3].generated_by = "another plugin", OURS
    preview.leave_the_others(
        those := Files(files), SimpleNamespace(theme=SimpleNamespace(static_templates={"404.html"}))
    )
    those.copy_static_files()
    assert copied == ["new.css", "theirs.json"]
