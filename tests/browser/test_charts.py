"""Charts as they are drawn: a name belongs to its point, and stands over nothing."""

from urllib.parse import urljoin

import pytest
from chromium import until

from macros.catalogue import presets

pytestmark = pytest.mark.browser

# Of each name in the first chart of the page: how far it is from its own point, from the next one, and from whatever
# else is drawn.
NAMES = """() => {
    const chart = document.querySelector("figure.ep-figure svg")
    const box = e => { const { x, y, width, height } = e.getBBox(); return [x, y, x + width, y + height] }
    const apart = (a, b) => Math.hypot(Math.max(a[0] - b[2], b[0] - a[2], 0), Math.max(a[1] - b[3], b[1] - a[3], 0))
    const middle = ([a, b, c, d]) => [(a + c) / 2, (b + d) / 2, (a + c) / 2, (b + d) / 2]
    const marks = [...chart.querySelectorAll(":is(circle, path):is(:has(> title), .point > *)")]
    const lines = [...chart.querySelectorAll("path:not(:has(> title))")].filter(e => /V/.test(e.getAttribute("d")))
    const names = [...chart.querySelectorAll("text[font-size='10.5'][paint-order]")]
    return names.map(name => {
        const here = box(name), far = m => apart(here, middle(box(m)))
        const own = marks.find(m => (m.closest(".point") ?? m).textContent.startsWith(`${name.textContent}: `))
        here[1] += 3, here[3] -= 3 // a line of text is lower than its box
        return { name: name.textContent, own: far(own), other: Math.min(...marks.filter(m => m !== own).map(far)),
            inside: here[2] <= chart.viewBox.baseVal.width,
            free: Math.min(...[...marks, ...lines, ...names.filter(n => n !== name)].map(e => apart(here, box(e)))) }
    })
}"""


@pytest.mark.parametrize("family", ["qwen", "llama", "gpt", "gemma", "deepseek"])
def test_a_name_in_a_familys_chart_is_nearest_to_its_own_point(open_page, site, family):
    members = [
        s for s, p in presets.paths().items() if p.parent.name == family and presets.preset(s).config is not None
    ]
    totals = {presets.preset(slug).name: presets.model(slug).counts.total for slug in members}
    largest = {name for name, total in totals.items() if total > 0.99 * max(totals.values())}  # a point for them all
    page = open_page(urljoin(site, f"models/{family}/"))
    page.evaluate("document.fonts.ready")
    found = page.evaluate(NAMES)
    assert largest & {f["name"] for f in found}
    assert [f for f in found if f["own"] >= f["other"] or f["free"] <= 0 or not f["inside"]] == []


def test_the_rule_in_the_chart_of_sizes_is_over_no_point(open_page, site):
    page = open_page(urljoin(site, "model-size/"))
    page.evaluate("document.fonts.ready")
    least = page.evaluate("""() => {
        const texts = [...document.querySelectorAll("figure.ep-figure text")]
        const rule = texts.find(t => /D²$/.test(t.textContent) && /12·/.test(t.textContent)), a = rule.getBBox()
        const marks = [...rule.closest("svg").querySelectorAll(":is(circle, path):is(:has(> title), .point > *)")]
        return Math.min(...marks.map(m => m.getBBox()).map(b => Math.hypot(
            Math.max(a.x - b.x - b.width, b.x - a.x - a.width, 0),
            Math.max(a.y - b.y - b.height, b.y - a.y - a.height, 0))))
    }""")
    assert least > 3


def test_the_points_of_a_chart_are_links_one_after_the_other_by_keyboard(open_page, site):
    page = open_page(urljoin(site, "models/gpt/"))
    until(page, "document.querySelector('a.point[tabindex=\"0\"]')")
    chart = page.locator("figure.ep-figure svg:visible").first
    stops = chart.locator("a.point[tabindex='0']")
    assert stops.count() == 1 and chart.locator("a.point").count() > 5
    first = stops.locator("title").text_content()
    stops.focus()
    assert chart.locator(".ep-named").text_content() == first
    page.keyboard.press("ArrowRight")
    focused = page.evaluate_handle("document.activeElement").as_element()
    said = focused.query_selector("title").text_content()
    assert said != first and chart.locator(".ep-named").text_content() == said and stops.count() == 1
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name=said.partition(":")[0]).wait_for()
