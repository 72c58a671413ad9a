"""What a word or a symbol means, where a reader points at it or touches it."""

from urllib.parse import urljoin

import pytest
from chromium import until
from copies import ROOT

from macros.site.extensions import glossary

pytestmark = pytest.mark.browser

STILL = """() => new Promise(go => {
    let isStill = true
    addEventListener("scroll", () => isStill = false, true)
    setTimeout(() => go(isStill), 100)
})"""
SHOWN = "document.querySelector('.ep-tip:popover-open')?.textContent ?? ''"
MEANS = glossary.tooltips(glossary.entries(ROOT / "docs/includes/glossary.md"))


def outside(page):
    """How far the box reaches beyond the window."""
    return page.locator(".ep-tip").evaluate("""e => {
        const { left, top, right, bottom } = e.getBoundingClientRect()
        return Math.max(-left, -top, right - innerWidth, bottom - innerHeight)
    }""")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_symbol_says_what_it_is_where_it_is_pointed_at(open_page, site, width):
    page = open_page(urljoin(site, "real-numbers/step-by-step/"), viewport={"width": width, "height": 700})
    page.get_by_role("button", name="All steps").click()
    symbol = page.locator("ol.ep-walk var[title]").first
    said = symbol.get_attribute("title")
    symbol.scroll_into_view_if_needed()
    until(page, STILL)
    symbol.hover()
    until(page, f"({SHOWN}) !== ''")  # the first move loads the script
    assert page.evaluate(SHOWN) == said and outside(page) <= 0
    assert symbol.evaluate("() => document.querySelectorAll('.ep-tip').length") == 1
    assert page.locator("ol.ep-walk var:not([title])").count() == 1, "the browser would show it too"
    page.locator(".ep-tip").hover()  # to read it at leisure
    assert page.evaluate(SHOWN) == said
    page.keyboard.press("Escape")
    assert not page.evaluate(SHOWN) and not page.locator("ol.ep-walk var:not([title])").count()
    assert page.locator("ol.ep-walk var[title]").first.get_attribute("title") == said


def test_it_goes_when_the_pointer_or_the_page_moves_on(open_page, site):
    page = open_page(urljoin(site, "real-numbers/step-by-step/"))
    page.get_by_role("button", name="All steps").click()
    symbols = page.locator("ol.ep-walk li:nth-child(2) var[title]")
    texts = symbols.evaluate_all("all => all.slice(0, 2).map(e => e.title)")
    first, second = symbols.nth(0).element_handle(), symbols.nth(1).element_handle()
    for symbol, said in ((first, texts[0]), (second, texts[1])):
        symbol.scroll_into_view_if_needed()
        until(page, STILL)
        symbol.hover()
        until(page, f"({SHOWN}) !== ''")
        assert page.evaluate(SHOWN) == said
    page.mouse.move(5, 5)
    until(page, f"({SHOWN}) === ''")
    first.scroll_into_view_if_needed()
    until(page, STILL)
    first.hover()
    assert page.evaluate(SHOWN)
    page.mouse.wheel(0, 400)
    until(page, f"({SHOWN}) === ''")


def test_a_finger_sees_what_a_word_means(open_page, site):
    page = open_page(urljoin(site, "checked-claims/"), viewport={"width": 390, "height": 844}, has_touch=True)
    word = page.locator(".md-content p abbr[title]").first
    said = MEANS[word.inner_text()]
    word.scroll_into_view_if_needed()
    until(page, STILL)
    word.tap()
    until(page, f"({SHOWN}) !== ''")
    assert page.evaluate(SHOWN) == said and outside(page) <= 0
