"""Without a script, the figure of a page that is read in order is drawn within the first screen."""

from urllib.parse import urljoin

import pytest
from guide_pages import address, pages
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
