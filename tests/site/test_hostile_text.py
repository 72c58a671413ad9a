"""Text of others becomes no markup: a site with hostile text wherever text may be, as files and in Chromium."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from itertools import cycle

import pytest
from copies import NOT_IN_NAV, build, small_site
from fuzz.calls import has_no_markup_of_ours
from fuzz.texts import HOSTILE, MARK
from serving import served

from macros.engine.errors import seen

# What stands on a line of a file, of a page or in a macro's call as it is.
LINES = [text for text in HOSTILE if text.strip() and seen(text) == text and len(text) < 200]


def quoted(text: str) -> str:
    """Text as TOML, YAML and Jinja write it."""
    return json.dumps(text, ensure_ascii=False)


def hostile_preset(n: int) -> str:
    """A preset in which all prose is hostile, and all names are as strange as names may be."""
    text = cycle(LINES[n:] + LINES[:n])
    prose = cycle([line for line in LINES if "<" not in line and "{" not in line])
    found = f"licence = \"' {MARK}='1\"\nlicence_source = {quoted(next(text))}"
    licence = f"licence_looked_at = {quoted(next(text))}" if n % 18 else found
    return f"""name = {quoted(f"{MARK}'s (#{n}) $x$ ~a~ _b_ ://www.{MARK}.example 100% =1")}
family = "Hostile"
organization = "$a$ '; drop = ~ #"
released = 2024-04-18
released_source = {quoted(next(text))}
hub = "{MARK}/{MARK}-{n}"
{licence}
aliases = ["javascript:alert(1)", "$z$", "'"]
headline = "'{MARK}'"
note = {quoted(next(prose))}
caveat = {quoted(next(prose))}

[config]
model_type = "llama"
hidden_size = 48
intermediate_size = 55
num_hidden_layers = 2
num_attention_heads = 6
vocab_size = 97
auto_map = [{quoted(next(text))}]
dtype = {quoted(next(text))}
transformers_version = {quoted(next(text))}

[sources]
config = {quoted(next(text))}
verified = 2026-11-21
names = {quoted(next(text))}
part = "text_config"
left_out = [{quoted(next(text))}]

[sources.values]
hidden_size = {quoted("card: " + next(text))}

[published]
parameters = 50_000
exact = false
source = {quoted("README " + next(text))}
active = {quoted(next(text))}
active_source = {quoted(next(text))}

[[published.extra]]
name = {quoted(next(text))}
count = 7
"""


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory):
    """The address of such a site, and its folder."""
    folder = small_site(tmp_path_factory.mktemp("hostile") / "site")
    for page in ("one", "two"):
        (folder / f"docs/guide/{page}.md").unlink()
    for name in ("deepseek", "mistral", "claude"):
        shutil.rmtree(folder / "macros/presets" / name)
    presets = folder / "macros/presets/hostile"
    presets.mkdir()
    for n in range(0, len(LINES), 9):
        (presets / f"hostile-{n}.toml").write_text(hostile_preset(n), "utf-8")
    pages = {
        "index.md": "# Start\n\n{{ catalogue() }}\n\n{{ family_changes('Hostile') }}\n",
        "models/index.md": "# Models\n\n{{ catalogue('Hostile') }}\n",
        "guide/a + b_c.md": "Prose only, and no title.\n",
    }
    for n, text in enumerate(LINES):
        said = text if not re.search(r"\{|\]\(", text) else f"text {n}"  # a strict build refuses macros and links there
        pages[f"guide/h{n}.md"] = (
            f"---\ntitle: {quoted(said)}\ndescription: {quoted(said)}\nauthor: {quoted(text)}\n---\n\n# Heading\n\n"
            f"{{{{ model_link('hostile-0', {quoted(text)}) }}}}\n\n"
            f"{{{{ html_source({quoted(text)}) }}}}\n\n"
            f"{{{{ matmul_figure(2, 3, 2, labels=[{quoted(text)}, '', ''], names=['x', {quoted(text)}, 'y'], "
            f"title={quoted(text)}) }}}}\n\n"
            f"{{{{ terminal({quoted('describe ' + shlex.quote(text))}, is_refused=true) }}}}\n"
        )
    for name, text in pages.items():
        (folder / "docs" / name).write_text(text, "utf-8")
    config = (folder / "mkdocs.yml").read_text("utf-8")
    config = config[: config.index("\nnav:")] + "\nnav:\n  - Home: index.md\n  - Models:\n      - models/index.md\n"
    (folder / "mkdocs.yml").write_text(config.replace(NOT_IN_NAV, "/guide/"), "utf-8")
    with served(folder / "site") as address:
        built = build(folder, "--strict", SITE_URL=address)
        assert built.returncode == 0, built.stderr[-3000:]
        assert all(map(str.isprintable, built.stderr.splitlines()))
        yield address, folder / "site"


@pytest.mark.parametrize(
    "page",
    [
        f"<{MARK}>",
        f"<p {MARK}>",
        f'<p class="a {MARK}">',
        f"<a href='javascript:window.{MARK}=1'>",
        f"<script>window.{MARK}=1</script>",
        "<img src=x onerror=y>",
        '<meta content="0" http-equiv="refresh">',
    ],
)
def test_what_is_looked_for_is_found(page):
    with pytest.raises(AssertionError):
        has_no_markup_of_ours(f"<p>text{page}text</p>")


@pytest.mark.processes
def test_no_file_of_a_hostile_site_has_markup_of_its_making(hostile_site):
    _, folder = hostile_site
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) > len(LINES)
    for page in pages:
        text = page.read_text("utf-8")
        has_no_markup_of_ours(text)
        assert "49" not in text.partition("<title>")[2].partition("</title>")[0], page
    for copy in folder.rglob("*.md"):
        outside = "".join(copy.read_text("utf-8").split("```")[::2])
        assert f"\n<b class={MARK}" not in outside and f" <script>window.{MARK}" not in outside, copy


@pytest.mark.browser
def test_a_hostile_site_does_nothing_in_a_browser(hostile_site, open_page):
    """Pages of each kind, and the search for such a name: no script ran, no element was made, nobody was sent away."""
    address, folder = hostile_site
    page = open_page(address)
    for path in ("", "models/", "models/hostile/", "models/hostile/hostile-0/", "guide/h0/", "guide/h4/", "guide/h15/"):
        page.goto(address + path)
        made = page.evaluate(f"[window.{MARK}, document.querySelector('.{MARK}, {MARK}, [{MARK}], #{MARK}')]")
        assert made == [None, None] and page.url == address + path
    heading = LINES[0]
    page.goto(address)
    page.keyboard.press("/")
    page.locator("dialog.ep-search input").fill(MARK)
    page.wait_for_selector("#ep-found a")
    assert MARK in page.locator("#ep-found").inner_text()
    assert page.evaluate(f"[window.{MARK}, document.querySelector('.{MARK}, {MARK}, [{MARK}]')]") == [None, None]
    assert heading in json.dumps([p.read_text("utf-8") for p in (folder / "search").glob("*.json")]).replace("\\", "")
