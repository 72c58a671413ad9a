"""The same sources under Zensical and under ProperDocs: the numbers of every page are those of MkDocs' build."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from html import unescape
from pathlib import Path

import pytest
import yaml
from copies import ROOT
from test_package import CONSTRAINTS, DEPENDENCIES, environment, run, uv

from macros.catalogue import page_paths, presets
from macros.cli.publish_check import finds
from macros.site import links, model_pages
from macros.site.other_engines import command, sources
from macros.views.kit.html import anchor

# Zensical does without MkDocs, ProperDocs has plugins of it in its place. Newer ones are tried by hand.
ZENSICAL, PROPERDOCS = ("zensical==0.0.73",), ("properdocs==1.6.7", "mkdocs-macros-plugin", "mkdocs-material")
OF_MKDOCS = {"mkdocs", "mkdocs-macros-plugin", "mkdocs-material"}
# Of the models' pages, which are made alike; the written pages are all there, and lead to the first three.
KEPT = ("gpt2", "llama-7b", "llama3-8b", "gpt-4", "mamba-130m", "gemma3-27b", "mixtral-8x7b")
QUIET = {**os.environ, "SITE_URL": "", "PYTHONDONTWRITEBYTECODE": "1", "NO_MKDOCS_2_WARNING": "1"}
LEFT_OUT = "the whole site, built by another engine in an environment of its own"


def settings() -> dict:
    return sources.settings((ROOT / "mkdocs.yml").read_text("utf-8"))


def test_the_settings_name_what_the_hooks_do(monkeypatch):
    monkeypatch.setenv("SITE_URL", "https://x.example/")
    said = settings()
    assert said["site_url"] == "https://x.example/" and said["repo_url"] == ""
    assert not {"hooks", "watch"} & said.keys() and said["extra"].keys() == {"paths", "edition"}
    assert said["plugins"][-1]["macros"]["modules"] == ["every_parameter"]
    (models,) = (entry["Models"] for entry in said["nav"] if "Models" in entry)
    families = [entry for entry in models if isinstance(entry, dict)]  # besides the written pages
    assert [next(iter(family)) for family in families] == list(model_pages.families())
    assert yaml.safe_load(yaml.safe_dump(said)) == said


def test_links_are_written_as_an_author_does():
    files = frozenset({"index.md", "a/index.md", "a/b.md", "a/c.md", "data/x.json"})
    for source, address, written in (
        ("a/b.md", "../c/#k", "c.md#k"),
        ("a/b.md", "../../?q=1", "../index.md?q=1"),
        ("a/b.md", "../", "index.md"),
        ("a/b.md", "./#here", "b.md#here"),
        ("a/b.md", "../../data/x.json", "../data/x.json"),
        ("index.md", "a/c/", "a/c.md"),
        ("a/index.md", "./", "index.md"),
        ("a/b.md", "#here", "#here"),
        ("a/b.md", "../nowhere/", "../nowhere/"),
        ("a/b.md", "https://x.example/c/", "https://x.example/c/"),
    ):
        given = f'<a class="x" href="{address}">x</a><a xlink:href="{address}">'
        assert unescape(links.with_source_links(given, source, files)) == given.replace(
            f' href="{address}"', f' href="{written}"'
        ), (
            source,
            address,
        )


def test_links_of_a_tag_are_written_so_too():
    """A tag writes each character that some syntax may read as a reference."""
    files = frozenset({"models/llama/a.md", "models/gpt/b_c.md"})
    for address, written in (
        ("../../gpt/b_c/", "../gpt/b_c.md"),
        ("../../gpt/b_c/#k", "../gpt/b_c.md#k"),
        ("../../gpt/b_c/?a=1&b=%22", "../gpt/b_c.md?a=1&b=%22"),
    ):
        html = anchor("x", address)
        assert "&#47;" in html
        (said,) = re.findall('href="([^"]*)"', links.with_source_links(html, "models/llama/a.md", files))
        assert unescape(said) == written and re.split("[?#]", said)[0] == re.split("[?#]", written)[0]
    elsewhere = anchor("x", "https://x.example/models/gpt/b_c/")
    assert links.with_source_links(elsewhere, "models/llama/a.md", files) == elsewhere


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine").write_text("")
    assert command.main([str(tmp_path)]) == 2 and "is not empty" in capsys.readouterr().err
    assert command.main([]) == 2 and "expected one folder" in capsys.readouterr().err
    (tmp_path / "mkdocs.yml").write_text("nav: []")
    unbuilt = ["--finish", str(tmp_path), str(tmp_path / "new")]
    assert command.main(unbuilt) == 2 and "run zensical build" in capsys.readouterr().err
    (tmp_path / "mkdocs.yml").unlink()
    monkeypatch.chdir(tmp_path)
    assert command.main(["new"]) == 2 and "run it where mkdocs.yml stands" in capsys.readouterr().err


# --- built ------------------------------------------------------------------------------------------------------------


def article(page: Path) -> str:
    """What stands on a page, as text; a tag is a break."""
    (html,) = re.findall(r"<article\b.*?</article>", page.read_text("utf-8"), re.S)
    away = r'<p class="ep-cite">.*?</p>|<details class="ep-bibtex">.*?</details>|<(script|style)\b.*?</\1>'
    html = re.sub(away, "", html, flags=re.S)
    return unescape(re.sub(r"<[^>]*>", "\n", html))


def numbers(page: Path) -> list[str]:
    return re.findall(r"\d+(?:[,.]\d+)*", article(page))


def with_few_models(folder: Path) -> None:
    """The sources without most models' pages and families, in the navigation too."""
    pages = {page_paths.model_page(slug) for slug in KEPT}
    pages |= {page_paths.family_page(presets.preset(slug).family) for slug in KEPT}
    for path in (folder / "docs/models").glob("*/*.md"):
        if path.relative_to(folder / "docs").as_posix() not in pages:
            path.unlink()
    said = yaml.safe_load((folder / "mkdocs.yml").read_text("utf-8"))
    (models,) = (entry["Models"] for entry in said["nav"] if "Models" in entry)
    for family in [entry for entry in models if isinstance(entry, dict)]:
        ((name, listed),) = family.items()
        family[name] = [p for p in listed if (p if isinstance(p, str) else next(iter(p.values()))) in pages]
        if not family[name]:
            models.remove(family)
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(said, allow_unicode=True, sort_keys=False), "utf-8")


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> Path:
    """The sources with few models' pages."""
    folder = tmp_path_factory.mktemp("sources") / "few"
    run(sys.executable, "-m", "macros.site", folder, cwd=ROOT, env=QUIET)
    with_few_models(folder)
    return folder


def without_links(copy: str) -> str:
    """A page as Markdown with the words of its links: of most models there is no page."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", copy)


def assert_finished(site: Path, ours: Path, pages: set[str]) -> None:
    """Of each page the Markdown copy, the policy and the hashed names, and the files of the search, as in `ours`."""
    copies = {page: page.replace("index.html", "index.md") for page in pages}
    assert [
        page for page, copy in copies.items()
        if without_links((site / copy).read_text("utf-8")) != without_links((ours / copy).read_text("utf-8"))
    ] == []  # fmt: skip
    listed, in_ours = (without_links((folder / "llms.txt").read_text("utf-8")).splitlines() for folder in (site, ours))
    assert len(listed) > len(pages) and set(listed) <= set(in_ours)
    assert listed == [line for line in in_ours if line in set(listed)], "another order"
    (assets,) = site.glob("assets-*")
    for page in [*pages, "404.html"]:
        html = (site / page).read_text("utf-8")
        assert html.count('rel="stylesheet"') == 1 and f"{assets.name}/styles.css" in html, page
        assert 'http-equiv="Content-Security-Policy"' in html and " data-tex=" not in html, page
        assert 'class="ep-search-link"' in html and "md-search" not in html, page
        for address in re.findall(r'(?:href|src)="((?:\.\./|\./|/)*assets[^"?#]*)"', html):
            place = site / address.lstrip("/") if page == "404.html" else site / page / ".." / address
            assert place.resolve().is_file(), (page, address)
        assert page == "404.html" or 'type="text/markdown"' in html, page
    core, whole = (json.loads((folder / "search/core.json").read_text("utf-8")) for folder in (site, ours))
    assert core.keys() == whole.keys()


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.processes
@pytest.mark.slow(LEFT_OUT)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("engine", "asked"), [("zensical", ZENSICAL), ("properdocs", PROPERDOCS)])
def test_every_number_is_that_of_mkdocs(engine, asked, few, tmp_path, site_folder):
    python = environment(tmp_path / "venv")
    needed = [str(requirement) for name, requirement in DEPENDENCIES.items() if name not in OF_MKDOCS]
    uv("pip", "install", "--python", python, "--constraint", CONSTRAINTS, *needed, *asked)
    uv("pip", "install", "--python", python, "--no-deps", "--editable", ROOT)
    folder = shutil.copytree(few, tmp_path / "sources")
    run(python.with_name(engine), "build", cwd=folder, env=QUIET)  # its end, too: V8 is closed in time
    site = folder / "site"
    pages = {path.relative_to(site).as_posix() for path in site.rglob("index.html")}
    written = {links.page_address(p.relative_to(ROOT / "docs").as_posix()) for p in (ROOT / "docs").rglob("*.md")}
    assert {f"{address}index.html" for address in written if not address.startswith("includes/")} <= pages
    assert {f"{links.page_address(page_paths.model_page(slug))}index.html" for slug in KEPT} <= pages
    different = [page for page in sorted(pages) if numbers(site / page) != numbers(site_folder / page)]
    assert different == []
    run(sys.executable, "-m", "macros.site", "--finish", folder, tmp_path / "finished", cwd=ROOT, env=QUIET)
    assert_finished(tmp_path / "finished", site_folder, pages)
    of_no_host = "sitemap.xml"
    found = [str(wrong) for wrong in finds(tmp_path / "finished", 5_000_000) if wrong.where != of_no_host]
    assert found == [], "links that the engine did not resolve"
    around = re.sub(r"<article\b.*?</article>", "", (site / "models/index.html").read_text("utf-8"), flags=re.S)
    assert {"gpt", "llama"} <= set(re.findall(r'href="(?:\./)?(\w+)/"', around)), "the navigation has no families"
    glossary = (site / "reference/glossary/index.html").read_text("utf-8")
    assert 'id="q_proj"' in glossary and "<abbr title=" in glossary
    model = (site / "models/llama/llama3-8b/index.html").read_text("utf-8")
    assert "<math" in model and "data-ep-" not in model and "ep-error" not in model
