"""The catalogue in a browser: sorted, filtered, linked to, by mouse and keyboard; pages of families and models."""

from urllib.parse import urljoin

import pytest
from chromium import accessibility, overflow, until

from macros.catalogue import presets
from macros.counting.costs import of as costs_of

pytestmark = pytest.mark.browser

MODELS = len(presets.paths())


@pytest.fixture
def catalogue(open_page, site):
    """Open the catalogue: `catalogue("?find=llama")`."""

    def open_(query="", **options):
        page = open_page(urljoin(site, f"models/{query}"), **options)
        if options.get("java_script_enabled", True):
            page.locator("form.ep-filter").wait_for()
        return page

    return open_


def names(page):
    """The names of the rows that are shown, in order."""
    return page.locator(".ep-catalogue tbody tr:visible th").evaluate_all("cells => cells.map(c => c.dataset.sort)")


def heading(page, title):
    return page.locator(".ep-catalogue thead th").filter(has=page.get_by_role("button", name=title, exact=True))


def said(page):
    return page.get_by_role("status").filter(has_text="models").text_content()


def test_without_scripts_the_whole_table_stands_and_no_form(catalogue):
    page = catalogue(java_script_enabled=False)
    assert len(names(page)) == MODELS
    assert page.locator("form.ep-filter").is_hidden()
    assert page.locator(".ep-catalogue thead button").count() == 0
    assert page.get_by_role("link", name="Llama 3 8B", exact=True).first.get_attribute("href")


def test_a_heading_sorts_by_its_numbers_and_back(catalogue):
    disclosed = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
    totals = {presets.preset(slug).name: presets.model(slug).counts.total for slug in disclosed}
    page = catalogue()
    given = names(page)
    days = page.locator(".ep-catalogue tbody time").evaluate_all("all => all.map(t => t.dateTime)")
    assert days == sorted(days, reverse=True)
    button = heading(page, "Parameters").get_by_role("button")
    button.click()
    assert heading(page, "Parameters").get_attribute("aria-sort") == "descending"
    assert not page.locator(".ep-catalogue caption").text_content().endswith("newest first")
    known = [n for n in names(page) if n in totals]
    assert known == names(page)[: len(known)], "what has no number comes last"
    assert [totals[n] for n in known] == sorted(totals.values(), reverse=True)
    button.click()
    assert heading(page, "Parameters").get_attribute("aria-sort") == "ascending"
    known = [n for n in names(page) if n in totals]
    assert known == names(page)[: len(known)] and [totals[n] for n in known] == sorted(totals.values())
    heading(page, "Model").get_by_role("button").click()
    assert page.locator(".ep-catalogue th[aria-sort]").count() == 1
    assert names(page)[0] == min(given, key=str.lower)
    heading(page, "Model").get_by_role("button").click()
    heading(page, "Model").get_by_role("button").click()
    assert names(page) == given and page.locator(".ep-catalogue th[aria-sort]").count() == 0


def test_dates_of_any_precision_sort_by_time(catalogue):
    page = catalogue("?sort=released&order=ascending")
    dates = page.locator(".ep-catalogue tbody time").evaluate_all("all => all.map(t => t.dateTime)")
    assert dates[0] == min(str(presets.preset(slug).released) for slug in presets.paths()) and dates == sorted(dates)


def test_it_is_sorted_and_filtered_by_keyboard_alone(catalogue):
    page = catalogue()
    page.get_by_label("Find").focus()
    page.keyboard.type("qwen3 8b")
    page.keyboard.press("Enter")
    assert "Qwen3 8B" in names(page) and len(names(page)) <= MODELS // 10 and "find=qwen3+8b" in page.url
    page.keyboard.press("Escape")
    page.get_by_label("Find").fill("")
    button = heading(page, "Layers").get_by_role("button")
    button.focus()
    assert button.evaluate("b => getComputedStyle(b).outlineStyle") != "none"
    page.keyboard.press("Enter")
    assert heading(page, "Layers").get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert heading(page, "Layers").get_attribute("aria-sort") == "ascending"
    assert button.evaluate("b => b === document.activeElement")


def test_a_model_is_found_by_any_of_its_names(catalogue):
    page = catalogue()
    for typed, expected in {
        "Meta-Llama-3-8B-Instruct": "Llama 3 8B",
        "deepseek-r1": "DeepSeek-V3",
        "openai-community/gpt2-xl": "GPT-2 XL",
        "qwen3.5-27b": "Qwen3.5 27B",
        "  LLAMA   3.3 ": "Llama 3.3 70B Instruct",
    }.items():
        page.get_by_label("Find").fill(typed)
        assert expected in names(page) and len(names(page)) <= MODELS // 10, typed
        assert said(page) == f"{len(names(page))} of {MODELS} models"
        assert page.locator(".ep-catalogue caption").text_content() == f"{said(page)}, newest first"


def test_a_model_found_by_an_alias_says_whose_shapes_it_has(catalogue):
    page = catalogue("?find=Meta-Llama-3-8B-Instruct")
    assert names(page) == ["Llama 3 8B"]
    assert page.locator(".ep-alias").text_content() == "also meta-llama/Meta-Llama-3-8B-Instruct"
    page.get_by_label("Find").fill("llama 3 8b")
    assert "Llama 3 8B" in names(page) and page.locator("tr:has(th[data-sort='Llama 3 8B']) .ep-alias").count() == 0


def test_the_filters_narrow_together_and_the_address_keeps_them(catalogue, open_page):
    page = catalogue()
    page.get_by_label("Family").select_option("Qwen")
    page.get_by_label("Kind").select_option("mixture of experts")
    page.get_by_label("Parameters, at least").select_option("30B")
    page.get_by_label("Parameters, at most").select_option("100B")
    shown = names(page)
    assert (
        "Qwen3 30B-A3B" in shown
        and "Qwen3 235B-A22B" not in shown
        and "Qwen3 32B" not in shown
        and "Mixtral 8x7B" not in shown
    )
    page.get_by_label("Attention").select_option("recurrent")
    assert "Qwen3-Next 80B-A3B" in names(page) and "Qwen3 30B-A3B" not in names(page)
    heading(page, "Parameters").get_by_role("button").click()
    again = open_page(page.url)
    again.locator("form.ep-filter").wait_for()
    assert names(again) == names(page) and said(again) == said(page)
    assert heading(again, "Parameters").get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Show all").click()
    until(page, f"document.querySelectorAll('.ep-catalogue tbody tr:not([hidden])').length === {MODELS}")
    assert said(page) == f"{MODELS} models" and "family" not in page.url


def test_what_a_model_costs_narrows_too(catalogue, open_page):
    page = catalogue()
    counts = {presets.preset(s).name: presets.model(s).counts for s in presets.paths() if presets.preset(s).config}
    page.get_by_label("Weights, at most").select_option("16 GB")
    published = names(page)
    assert set(published) == {n for n, c in counts.items() if costs_of(c).weight_bytes("published") <= 16 * 10**9}
    page.get_by_label("in format").select_option("int4")
    assert len(names(page)) > len(published) and "format=int4" in page.url
    page.get_by_label("KV cache per token, at most").fill("65.536")
    page.get_by_label("Context, at least").select_option("32,768")
    page.get_by_label("Released since").select_option("2025")
    shown, found = names(page), [presets.model(s) for s in presets.paths() if presets.preset(s).config]
    assert set(shown) == {
        m.preset.name
        for m in found
        if str(m.preset.released) >= "2025"
        and (m.longest_context[0] or 0) >= 32_768
        and costs_of(m.counts).weight_bytes("int4") <= 16 * 10**9
        and m.counts.cache_bytes_per_token_uncapped() <= 65_536
    }
    again = open_page(page.url)
    again.locator("form.ep-filter").wait_for()
    assert names(again) == shown


@pytest.mark.parametrize(
    "path, two", [("models/", ("GPT-2 XL", "Qwen3 8B")), ("models/qwen/", ("Qwen3 4B", "Qwen3 8B"))]
)
def test_two_that_are_ticked_lead_to_their_comparison(open_page, site, path, two):
    page = open_page(urljoin(site, path))
    page.wait_for_load_state("networkidle")
    for name in two:
        page.get_by_role("checkbox", name=f"Compare {name}", exact=True).first.check()
    page.get_by_role("link", name="Compare the 2 selected models").first.click()
    page.locator(".ep-answer strong").wait_for()
    assert all(page.get_by_role("columnheader", name=name, exact=True).count() for name in two)


def test_it_finds_a_kind_a_maker_with_a_year_and_two_names_at_once(catalogue):
    page = catalogue()
    find = page.get_by_label("Find")
    find.fill("gqa")
    assert "Llama 3 8B" in names(page) and "GPT-2 Small" not in names(page) and "DeepSeek-V3" not in names(page)
    find.fill("meta 2025")
    assert set(names(page)) == {"Llama 4 Maverick", "Llama 4 Scout", "Code World Model 32B"}
    find.fill("gpt-2 xl, qwen3 8b")
    assert set(names(page)) == {"GPT-2 XL", "Qwen3 8B", "Qwen3 Embedding 8B", "Qwen3-VL 8B", "Qwen3.5 0.8B"}
    find.fill("apache")
    assert "Mixtral 8x7B" in names(page) and "Llama 3 8B" not in names(page)


def test_what_tells_models_apart_is_seen_without_scrolling_at_1280_pixels(catalogue):
    page = catalogue()
    box = page.locator(".ep-scroll:has(.ep-catalogue)").bounding_box()
    for title in ("Parameters", "KV cache, bytes/token", "Context, tokens", "Attention", "Released", "License"):
        cell = heading(page, title).bounding_box()
        assert cell["x"] + cell["width"] <= box["x"] + box["width"] + 1, title


def test_an_address_with_nonsense_shows_everything_it_can(catalogue):
    page = catalogue("?family=nobody&sort=nothing&order=sideways&kind=dense")
    assert said(page) != f"{MODELS} models" and "GPT-2 Small" in names(page)


@pytest.mark.parametrize(
    "name, title", [("licence", "License"), ("cache-bytes-a-token", "KV cache, bytes/token"), ("license", "License")]
)
def test_an_address_may_call_a_column_as_it_was_called_before(catalogue, name, title):
    page = catalogue(f"?sort={name}&order=ascending")
    assert heading(page, title).get_attribute("aria-sort") == "ascending"


def test_it_comes_back_as_it_was(catalogue):
    page = catalogue()
    page.get_by_label("Find").fill("llama 3 8b")
    heading(page, "Parameters").get_by_role("button").click()
    shown = names(page)
    page.get_by_role("link", name="Llama 3 8B", exact=True).first.click()
    page.wait_for_url("**/models/llama/llama3-8b/")
    page.get_by_role("heading", level=1, name="Llama 3 8B").wait_for()
    page.go_back()
    page.locator("form.ep-filter").wait_for()
    assert names(page) == shown and page.get_by_label("Find").input_value() == "llama 3 8b"
    heading(page, "Layers").get_by_role("button").click()
    assert heading(page, "Layers").get_attribute("aria-sort") == "descending"


@pytest.mark.slow("axe looks at a long table, which the tests of each kind of page do too")
def test_axe_finds_nothing_in_a_filtered_table(catalogue):
    assert not accessibility(catalogue("?find=Meta-Llama-3-8B-Instruct&sort=parameters"))


@pytest.mark.parametrize("path", ["models/", "models/llama/", "models/claude/", "models/jamba/jamba-v0.1/"])
def test_on_a_phone_nothing_is_wider_than_the_screen(open_page, site, path):
    page = open_page(urljoin(site, path), viewport={"width": 390, "height": 844})
    page.wait_for_load_state("networkidle")
    assert overflow(page) == 0
    for box in page.locator("form.ep-filter :is(input, select, button):visible").all():
        size = box.bounding_box()
        assert size["height"] >= 24 and size["x"] + size["width"] <= 390


def test_on_a_phone_the_name_stays_while_the_figures_scroll(catalogue):
    page = catalogue("?find=gpt2", viewport={"width": 390, "height": 844})
    table, name = page.locator(".ep-scroll:has(.ep-catalogue)"), page.locator(".ep-catalogue tbody tr:visible th").first
    before = name.bounding_box()["x"]
    table.evaluate("box => box.scrollLeft = 300")
    assert table.evaluate("box => box.scrollLeft") > 100 and abs(name.bounding_box()["x"] - before) < 2
