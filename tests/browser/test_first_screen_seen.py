"""Without a script, the figure of a page that is read in order is drawn within the first screen; a page stays short."""

from urllib.parse import urljoin

import pytest
from guide_pages import PARTS, address, pages
from sampling import sampled

pytestmark = pytest.mark.browser

SCREENS = {1280: 900, 390: 1200}  # of a phone the first and a part of the second
# The bottom of the first drawing of the first figure, of the panel that is the reader's if there are several.
BOTTOM = """() => {
    const isSeen = e => {
        const box = e.getBoundingClientRect()
        return box.width > 60 && box.height > 20 && e.checkVisibility() && !e.closest("details:not([open])")
    }
    const first = (place, of) => [...place.querySelectorAll(of)].find(isSeen)
    const figure = first(document.querySelector("article"), "figure, .ep-tool, ol.ep-walk"),
        lit = figure && first(figure, ".ep-bars.lit"),
        drawn = lit ?? (figure && first(figure, ".ep-bars, svg:not(.ep-patterns), table, li"))
    return drawn ? drawn.getBoundingClientRect().bottom + scrollY : null
}"""


@pytest.mark.parametrize("page", sampled(pages(), 8))
def test_a_figure_is_drawn_in_the_first_screen(open_page, site, page):
    for width, height in SCREENS.items():
        tab = open_page(
            urljoin(site, address(page)), viewport={"width": width, "height": 844}, java_script_enabled=False
        )
        bottom = tab.evaluate(BOTTOM)
        assert bottom is not None and bottom <= height, f"{page} at {width} px: its figure ends at {bottom}"


MOST_WORDS = 900
# The words of a page as it opens, tables included: without drawings and their labels, formulas and buttons.
WORDS = """() => {
    const left = "svg, math, script, style, button, select, .ep-bars, .ep-small-heads, .ep-looks-at, .ep-stepper, "
        + ".ep-walk, .ep-hidden, .headerlink, .md-path, .ep-cite, .ep-bibtex"
    const walker = document.createTreeWalker(document.querySelector(".md-content__inner"), NodeFilter.SHOW_TEXT)
    let words = 0
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const place = text.parentElement
        if (!text.data.trim() || place.closest(left) || !place.checkVisibility()) continue
        words += text.data.split(/\\s+/).filter(word => /\\p{L}/u.test(word)).length
    }
    return words
}"""


SHORT = *pages(PARTS[:1]), "costs/several-devices.md", "costs/time.md"


@pytest.mark.parametrize("page", sampled(SHORT, 4))
def test_a_page_of_the_path_has_few_words_open(open_page, site, page):
    words = open_page(urljoin(site, address(page)), viewport={"width": 1280, "height": 900}).evaluate(WORDS)
    assert 200 < words <= MOST_WORDS, f"{page}: {words} words are open; fold what not every reader wants"
