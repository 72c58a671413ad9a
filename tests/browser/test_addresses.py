"""The standing attack on the tools: addresses and files that nobody would write (tests/fuzz/addresses.py)."""

import random

import pytest
from fuzz import addresses, tried
from serving import own_assets

pytestmark = pytest.mark.browser


@pytest.fixture
def attacked(open_page, site, site_folder):
    """The site's own page, with its policy, in which the tools are mounted."""
    page = open_page(f"{site}404.html")
    addresses.use(page, f"{site}{own_assets(site_folder).name}/")
    yield
    addresses.leave()


def test_the_first_cases(attacked):
    rng = random.Random("addresses")
    for _ in range(addresses.FEW):
        find = tried(addresses, addresses.draw(rng))
        assert find is None, f"{find}\n{find.details}"
