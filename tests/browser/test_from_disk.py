"""A copy of the site on a disk, opened without a server: links lead to files, and a tool says why it does not run."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from copies import NAV, PAGES, build, small_site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

TOOLS = {
    "tools/fits.md": "# What fits\n\n{{ what_fits() }}\n",
    "tools/config.md": "# Any config\n\n{{ any_config() }}\n",
    "tools/compare.md": '# Compare\n\n{{ compare(["gpt2", "llama3-8b"]) }}\n\n```sh\nls\n```\n\n'
    '<form class="ep-ask" action="../models/index.html"><input name="find"><button>Look up</button></form>\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small site, as Publishing says."""
    nav = NAV + "  - Tools:\n      - tools/fits.md\n      - tools/config.md\n      - tools/compare.md\n"
    site = small_site(tmp_path_factory.mktemp("disk") / "site", pages=PAGES | TOOLS, nav=nav)
    built = build(site, "--strict", DIRECTORY_URLS="false")
    assert built.returncode == 0, built.stderr
    return site / "site"


def links(page: Path) -> set[str]:
    found = re.findall(r'<(?:a|form)\b[^>]*? (?:href|action)="([^"]*)"', page.read_text("utf-8"))
    return set(map(unescape, found))


def test_each_link_leads_to_a_file(folder):
    pages = [page for page in folder.rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 12
    for page in pages:
        for link in links(page):
            parts = urlsplit(link)
            if not parts.scheme and parts.path:
                assert (page.parent / unquote(parts.path)).is_file(), f"{page.relative_to(folder)}: {link}"


def test_pages_are_read_and_tools_say_what_helps(folder, open_page):
    page = open_page((folder / "index.html").as_uri())
    page.get_by_role("link", name="Next", exact=True).click()
    assert page.url.endswith("/guide/one.html#a-section")
    page.get_by_role("link", name="All models").click()
    assert page.url.endswith("/models/index.html") and page.locator("h1").inner_text().startswith("Models")
    for tool, said, example in (
        ("fits", "an example", "The best format that fits at"),
        ("config", "the command that does the same", "every-parameter describe"),
    ):
        page.goto((folder / f"tools/{tool}.html").as_uri())
        notice = page.locator(".ep-tool .ep-problem")
        notice.wait_for()
        assert f"so you see {said}." in notice.inner_text() and "python3 -m http.server" in notice.inner_text()
        assert example in page.locator(".ep-tool").inner_text()
        assert "This page needs JavaScript" not in page.locator(".ep-tool").inner_text()
    assert not open_page.complaints


def test_a_filter_and_a_field_say_what_they_do_not_do(folder, open_page):
    """No room is kept for what never comes, and no button stands that does nothing."""
    page = open_page((folder / "tools/compare.html").as_uri(), viewport={"width": 390, "height": 844})
    page.get_by_text("leads to the list of all models").wait_for()
    page.locator("html.js").wait_for()
    assert page.locator(".md-content pre > code").count() and not page.locator(".md-code__button").count()
    page.locator("input[name=find]").fill("<b>llama3-8b</b>")
    page.get_by_role("button", name="Look up").click()
    notice = page.locator(".ep-problem")
    notice.wait_for()
    assert "everything is listed, not only “<b>llama3-8b</b>”" in notice.inner_text()
    below = page.locator(".ep-block .ep-scroll").first.bounding_box()["y"]
    above = notice.bounding_box()
    assert below - above["y"] - above["height"] < 40
    box = "e => getComputedStyle(e, '::before').content"
    assert page.locator(".ep-catalogue tbody th").first.evaluate(box) == "none"
    assert not open_page.complaints
