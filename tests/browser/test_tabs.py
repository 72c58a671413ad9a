"""Tests take a tab one after another: nothing of the one before is in it."""

from urllib.parse import urljoin

import pytest
from chromium import Tab
from playwright.sync_api import Error

pytestmark = pytest.mark.browser

SIZE = {"width": 1280, "height": 900}
LEAVE = """() => {
    localStorage.setItem("left", "1")
    sessionStorage.setItem("left", "1")
    document.cookie = "left=1"
    addEventListener("pagehide", () => sessionStorage.setItem("left", "1"))
    for (const n of [1, 2, 3]) history.pushState({}, "", `?left=${n}`)
}"""
LEFT = """() => [
    localStorage.getItem("left"), sessionStorage.getItem("left"), document.cookie,
    matchMedia("(prefers-color-scheme: dark)").matches, matchMedia("print").matches, innerWidth, scrollY,
]"""


@pytest.mark.parametrize("path", ["costs/", "reference/licence/"])
def test_a_tab_is_given_on_as_new(browser, site, path):
    tab = Tab(browser, SIZE, {})
    tab.asked, address = site, urljoin(site, path)
    page = tab.page
    page.goto(urljoin(site, "costs/"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark", media="print")
    page.evaluate(LEAVE)
    page.evaluate("scrollTo(0, 500)")
    tab.as_new(SIZE, address)
    page.goto(address)
    assert page.evaluate(LEFT) == [None, None, "", False, False, 1280, 0]
    assert page.evaluate("history.length") <= 2 and not tab.complaints
    assert tab.is_as_before
    page.route("**/x", lambda route: route.abort())
    assert not tab.is_as_before
    tab.context.close()


def test_no_other_host_is_asked_unnoticed(browser):
    """Chromium finds none, and what asks for one is told."""
    tab = Tab(browser, SIZE, {})
    tab.asked = "http://127.0.0.1:1/"
    for address in ("http://elsewhere.example/", "http://192.0.2.1/", "http://localhost/"):
        with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
            tab.goes(address)
        assert f"asked another host: {address}" in tab.complaints
    tab.context.close()
