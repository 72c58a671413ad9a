"""The search in a browser: fetched when it is asked for, by keyboard, on a phone, without scripts, from disk."""

from urllib.parse import urljoin

import pytest
from conftest import accessibility, overflow, own_assets, until

pytestmark = pytest.mark.browser


def test_it_comes_when_asked_and_leads_by_keyboard_to_a_page_and_a_row(open_page, site, site_folder):
    page = open_page(urljoin(site, "costs/"))
    page.wait_for_load_state("networkidle")
    fetched = []
    page.on("request", lambda request: fetched.append(request.url.removeprefix(site)))
    names = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [n.removeprefix(site) for n in names if "search" in n] == [f"{own_assets(site_folder).name}/search/open.js"]
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search")
    box.wait_for()
    assert "search/core.json" in fetched and not [name for name in fetched if "words-" in name]
    page.evaluate("window.notReloaded = true")
    page.keyboard.type("how many parameters does llama 3 8b have")
    first = page.get_by_role("option").first
    first.filter(has_text="8,030,261,248 parameters").wait_for()
    assert box.get_attribute("aria-activedescendant") == first.get_attribute("id")
    assert (
        first.get_attribute("aria-selected") == "true"
        and "found" in page.locator(".ep-search [role=status]").text_content()
    )
    assert not accessibility(page)
    page.keyboard.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") == page.get_by_role("option").nth(1).get_attribute("id")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/llama/llama3-8b/")
    page.get_by_role("heading", level=1, name="Llama 3 8B").wait_for()
    assert not box.is_visible() and page.evaluate("window.notReloaded")
    page.keyboard.press("Control+k")
    box.fill("llama 3 8b q_proj")
    page.keyboard.press("Enter")  # at once: it waits for the answer
    page.wait_for_url("**/llama3-8b/#model.layers.0.self_attn.q_proj.weight")
    row = page.locator("tr[id='model.layers.0.self_attn.q_proj.weight']")
    until(page, "row => row.getBoundingClientRect().top >= 0", arg=row.element_handle())
    page.get_by_role("link", name="Search").click()
    box.fill("xyzzyq")
    page.get_by_role("link", name="All models").last.wait_for()
    page.keyboard.press("Escape")
    assert not box.is_visible() and page.get_by_role("link", name="Search").evaluate(
        "e => e === document.activeElement"
    )


def test_on_a_phone_it_fits(open_page, site):
    page = open_page(site, viewport={"width": 390, "height": 844})
    page.get_by_role("link", name="Search").click()
    page.get_by_role("combobox", name="Search").fill("model.layers.0.self_attn.q_proj.weight of deepseek v3")
    page.get_by_role("option").first.wait_for()
    assert overflow(page) == 0
    assert page.get_by_role("option").evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")


def test_without_scripts_and_from_disk_the_link_leads_to_all_models(open_page, site, site_folder, browser):
    page = open_page(site, java_script_enabled=False)
    link = page.locator(".ep-search-link")
    assert link.inner_text().strip() == "All models" and link.get_attribute("href") == "models/"
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    from_disk = context.new_page()
    from_disk.goto((site_folder / "index.html").as_uri())
    until(from_disk, "document.querySelector('.ep-search-link').innerText.trim() === 'All models'")
    context.close()


def test_an_index_that_is_not_there_is_said(open_page, site):
    page = open_page(site)
    page.route("**/search/core.json", lambda route: route.fulfill(status=404, body=""))
    page.get_by_role("link", name="Search").click()
    page.get_by_text("The index could not be fetched.").wait_for()
    open_page.complaints.clear()
