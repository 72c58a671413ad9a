"""Old addresses lead on: each line of the table to a page that is there, in a browser without scripts too."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from copies import ROOT, build, small_site
from fuzz.saves import Serve, until

from macros.engine.errors import Problem
from macros.site import model_pages, moved


@functools.cache
def pages() -> set[str]:
    return {
        *(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")),
        *(page.path for page in model_pages.pages()),
    }


@pytest.fixture(autouse=True)
def _ours_again():
    yield
    moved.moved.cache_clear()


def table(monkeypatch, tmp_path: Path, text: str) -> None:
    monkeypatch.setattr(moved, "TABLE", tmp_path / "moved.toml")
    moved.TABLE.write_text(text, "utf-8")
    moved.moved.cache_clear()


def test_each_old_address_leads_to_a_page_of_the_site():
    assert list(moved.check(pages())) == [] and len(moved.moved()) >= 6


def test_models_of_renamed_families_are_in_the_table():
    assert moved.moved()["models/seamlessm4t/seamless-m4t-v2-large.md"] in pages()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('"models/old.md" = "zzz.md"', "moved.toml:2: zzz.md: there is no such page; write the path of a page"),
        ('"models/old.md" = "models/indx.md"', 'did you mean "models/index.md"?'),
        ('"models/index.md" = "index.md"', "models/index.md is a page: its address leads to itself; delete the line"),
        ('"a.md" = "models/old.md"\n"models/old.md" = "index.md"', 'models/old.md has moved, too; write "index.md"'),
    ],
)
def test_a_line_that_leads_nowhere_is_named(monkeypatch, tmp_path, line, says):
    table(monkeypatch, tmp_path, f"# Moved\n{line}\n")
    assert says in str(next(iter(moved.check({"index.md", "models/index.md"}))))


@pytest.mark.parametrize("text", ['"models/old.md" = 3', '"models/old/" = "index.md"', "models/old.md = "])
def test_a_table_that_cannot_be_read_is_one_line(monkeypatch, tmp_path, text):
    table(monkeypatch, tmp_path, text)
    with pytest.raises(Problem, match=r"moved\.toml"):
        moved.moved()


@pytest.mark.parametrize(
    ("has_folders", "link"), [(True, "../../../guide/one/#a-section"), (False, "../../guide/one.html#a-section")]
)
def test_a_page_of_an_old_address_names_the_new_one(monkeypatch, tmp_path, has_folders, link):
    table(monkeypatch, tmp_path, '"models/old/it.md" = "guide/one.md#a-section"\n"b.md" = "none.md"')
    [one] = moved.pages({"guide/one.md"}, has_folders)
    assert one.path == ("models/old/it/index.html" if has_folders else "models/old/it.html")
    assert f'content="0; url={link}"' in one.content and f'<a href="{link}">' in one.content


def test_the_table_names_what_a_deleted_page_may_be_now():
    pages = {"models/gpt/gpt2.md", "models/gpt-2/gpt2.md", "models/llama/llama3-8b.md"}
    assert moved.guess("models/meta/llama3-8b.md", pages) == '"models/meta/llama3-8b.md" = "models/llama/llama3-8b.md"'
    assert moved.guess("zzz.md", pages) == '"zzz.md" = "…"'


@pytest.mark.processes
@pytest.mark.share(4, of="previews of their own")
def test_a_deleted_model_is_not_found_and_the_preview_says_what_its_address_needs(tmp_path):
    site = small_site(tmp_path / "site")
    (site / "macros/site/moved.toml").write_text('"models/old/it.md" = "models/gpt/gpt2.md"\n', "utf-8")
    built = build(site, "--strict")
    assert built.returncode == 0, built.stderr
    old = (site / "site/models/old/it/index.html").read_text("utf-8")
    assert re.search(r'url=\.\./\.\./gpt/gpt2/"', old) and "models/old" not in (site / "site/sitemap.xml").read_text()
    server = Serve(site)
    try:
        server.shows("models/mistral/mixtral-8x7b/", "Mixtral", 60)
        until(lambda: "has moved" in server.get("models/old/it/"), 60)
        folder = site / "macros/presets"
        (folder / "mistral/mixtral-8x7b.toml").rename(folder / "mistral/mixtral-one.toml")
        (site / "docs/guide/two.md").write_text("# Two\n\nNothing.\n", "utf-8")
        until(lambda: server.get("models/mistral/mixtral-8x7b/").startswith("404"), 10)
        line = '"models/mistral/mixtral-8x7b.md" = "models/mistral/mixtral-one.md"'
        assert line.replace('"', "&#34;") in server.get("models/mistral/mixtral-8x7b/").replace("&quot;", "&#34;")
        assert line in server.log.read_text()
        (site / "macros/site/moved.toml").write_text(f"{line}\n", "utf-8")
        server.shows("models/mistral/mixtral-8x7b/", "has moved", 60)
    finally:
        server.stop()
