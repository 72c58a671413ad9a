"""The chart of caches: on a phone it fits, and its lines are named below it."""

from urllib.parse import urljoin

import pytest
from chromium import overflow

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("path", ["costs/kv-cache/", "what-happens/recurrent-layers/"])
def test_on_a_phone_the_chart_fits_and_names_its_lines_below(open_page, site, path):
    for width in (390, 1280):
        page = open_page(urljoin(site, path), viewport={"width": width, "height": 844})
        figure = page.locator("figure.ep-chart:has(.ep-legend)").first
        names, legend = figure.locator(".ep-name text"), figure.locator(".ep-legend li")
        assert names.count() == legend.count() > 1
        seen = names if width == 1280 else legend
        assert all(n.is_visible() for n in seen.all()) and not any(
            n.is_visible() for n in (legend if width == 1280 else names).all()
        )
        assert figure.evaluate("e => e.scrollWidth <= e.clientWidth") and overflow(page) == 0
        right = figure.evaluate("e => e.getBoundingClientRect().right")
        shown = figure.locator("text").evaluate_all(
            "all => all.filter(t => t.getClientRects().length).map(t => t.getBoundingClientRect())"
            ".filter(box => box.width).map(box => box.right)"
        )
        assert max(shown) <= right + 1
