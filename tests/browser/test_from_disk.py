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
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small site, as Publishing says."""
    nav = NAV + "  - Tools:\n      - tools/fits.md\n      - tools/config.md\n"
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
    for tool, example in ("fits", "The best format that fits at"), ("config", "every-parameter describe"):
        page.goto((folder / f"tools/{tool}.html").as_uri())
        said = page.locator(".ep-tool .ep-problem")
        assert said.is_visible() and "python3 -m http.server" in said.inner_text()
        assert example in page.locator(".ep-tool").inner_text()
    # Fonts that are asked for early are refused there, and come later or not at all: nothing else is.
    refused = [line for line in open_page.complaints if "/vendor/" in line or "net::ERR_FAILED" in line]
    open_page.complaints[:] = [line for line in open_page.complaints if line not in refused]
