"""The gallery of architectures: the filter, two drawings to compare, and every drawing without scripts."""

from urllib.parse import urljoin

import pytest
from chromium import accessibility, overflow, until

pytestmark = pytest.mark.browser


def shown(page):
    return page.locator(".ep-gallery > li:visible")


def test_a_filter_shows_the_drawings_that_fit_and_stands_in_the_address(open_page, site):
    page = open_page(urljoin(site, "models/gallery/"))
    everything = shown(page).count()
    assert everything > 90
    page.get_by_label("Kind").select_option("mixture of experts")
    page.get_by_label("Year").select_option("2024")
    few = shown(page).count()
    assert 0 < few < everything and f"{few} of {everything} types" in page.get_by_role("status").first.inner_text()
    assert all("mixture of experts" in card.inner_text() for card in shown(page).all())
    again = open_page(page.url)
    again.get_by_text(f"{few} of {everything} types").wait_for()
    assert shown(again).count() == few
    again.get_by_role("button", name="Show all").click()
    again.get_by_label("Find").fill("attention sink")
    assert "gpt_oss" in " ".join(shown(again).all_inner_texts()) and shown(again).count() < everything // 10


@pytest.mark.share(2)
@pytest.mark.parametrize("width", [390, 1280])
def test_two_drawings_stand_beside_or_over_each_other(open_page, site, width):
    page = open_page(urljoin(site, "models/gallery/"), viewport={"width": width, "height": 844})
    assert overflow(page) == 0
    for name in ("Llama 2 70B", "GPT-2 Small", "Gemma 3 4B"):
        page.get_by_label("Find").fill(name)
        page.get_by_label(f"Compare {name}", exact=True).check()
    assert not page.get_by_label("Compare Llama 2 70B", exact=True).is_checked()  # the third took its place
    page.get_by_role("button", name="Compare", exact=True).click()
    dialog = page.get_by_role("dialog")
    assert dialog.locator("svg").count() == 2 and "Only in Gemma 3 4B" in dialog.inner_text()
    left, right = (drawing.bounding_box() for drawing in dialog.locator("svg").all())
    assert left["x"] + left["width"] <= right["x"]
    dialog.get_by_label("Over each other").check()
    below, above = (drawing.bounding_box() for drawing in dialog.locator("svg").all())
    assert below["x"] < above["x"] + above["width"] and above["x"] < below["x"] + below["width"]
    assert not accessibility(page, "dark")
    page.keyboard.press("Escape")
    assert dialog.count() == 0


def test_without_scripts_every_drawing_is_there_and_leads_to_its_model(open_page, site):
    page = open_page(urljoin(site, "models/gallery/"), java_script_enabled=False)
    assert shown(page).count() > 90 and not page.locator("form.ep-filter").is_visible()
    card = shown(page).filter(has_text="GPT-2 Small")
    assert card.get_by_role("img").count() == 1
    box = card.bounding_box()
    card.scroll_into_view_if_needed()
    page.mouse.click(*(lambda b: (b["x"] + b["width"] / 2, b["y"] + b["height"] / 2))(card.bounding_box()))
    page.wait_for_url("**/models/gpt/gpt2/")
    assert box


def test_a_phone_shows_a_part_and_more_at_a_press(open_page, site):
    page = open_page(urljoin(site, "models/gallery/"), viewport={"width": 390, "height": 844})
    more = page.get_by_role("button", name="more of")
    more.wait_for()
    assert shown(page).count() == 24 and page.evaluate("document.documentElement.scrollHeight") <= 12_000
    assert page.get_by_label("Find").is_visible() and page.get_by_label("Find").bounding_box()["y"] < 1200
    more.click()
    assert shown(page).count() == 48 and page.evaluate("document.activeElement.closest('li') !== null")
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Year").select_option("2019")
    assert 0 < shown(page).count() < 24 and not more.is_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("button", name="Show all").click()
    until(page, "document.querySelectorAll('.ep-gallery > li:not([hidden])').length > 90")
    assert shown(page).count() > 90 and not more.is_visible()
