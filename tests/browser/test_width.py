"""Nothing is cut off: what a page shows fits its window, and what still scrolls can be seen and reached to scroll."""

import re
from collections import defaultdict
from urllib.parse import urljoin

import pytest
from chromium import overflow, until
from sampling import sampled

pytestmark = pytest.mark.browser

WIDTHS = 390, 768, 1280, 1920
WHOLE = 1280  # from this width on only tables of more than MANY columns scroll sideways
MANY = 10

# One page of each kind, not the longest.
KINDS = (
    "",
    "models/",
    "models/llama/",
    "models/gpt/gpt2/",
    "costs/kv-cache/",
    "model-size/",
    "what-happens/attention-deep-dive/",
    "reference/how-it-works/",
)

# With every part unfolded: words that are broken inside and, where all has to fit, what is wider than its place (how
# much, how many columns it has, what it is).
MEASURE = """whole => {
    const content = document.querySelector(".md-content__inner"), cut = [], broken = [], spilt = new Set()
    const sheet = new CSSStyleSheet() // what a phone leaves for later would be laid out for each word
    sheet.replaceSync(".md-content * { content-visibility: visible !important }")
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
    for (const folded of content.querySelectorAll("details")) folded.open = true
    // A fence of the theme takes the margin of a narrow page too.
    const end = Math.min(document.documentElement.clientWidth, content.getBoundingClientRect().right + 17)
    const report = (e, by) => {
        const table = e.closest("table") ?? e.querySelector("table")
        const cells = [...table?.rows ?? []].map(row => [...row.cells].reduce((n, cell) => n + cell.colSpan, 0))
        const columns = Math.max(0, ...cells)
        const said = e.getAttribute("aria-label") ?? table?.caption?.textContent ?? e.textContent
        cut.push({ by, columns, what: `${e.localName}.${e.className}: ${said.trim().slice(0, 60)}` })
    }
    for (const e of whole ? content.querySelectorAll("*") : []) {
        // A drawing beside a step moves to the step's box.
        if (e.closest(".md-clipboard, .headerlink, .ep-stepper-drawing, svg *, math *")) continue
        const place = e.getBoundingClientRect(), style = getComputedStyle(e)
        if (place.width < 3 || place.height < 3) continue
        if (style.overflowX !== "visible" && style.display !== "inline" && e.scrollWidth > e.clientWidth + 1)
            report(e, e.scrollWidth - e.clientWidth)
        else if (place.right > end + 1) {
            let inside = spilt.has(e.parentElement)
            for (let p = e.parentElement; p !== content; p = p.parentElement)
                inside ||= getComputedStyle(p).overflowX !== "visible"
            spilt.add(e)
            if (!inside) report(e, Math.round(place.right - end))
        }
    }
    const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT), range = document.createRange()
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        if (!text.data.trim() || text.parentElement.closest("svg, math, pre, script, style, .ep-hidden")) continue
        range.selectNodeContents(text)
        if (range.getClientRects().length < 2) continue
        for (const word of text.data.matchAll(/[\\p{L}\\p{N}_,’]{2,}/gu)) {
            if (/^[0-9a-f]{64}$/.test(word[0])) continue // a digest is no word
            range.setStart(text, word.index)
            range.setEnd(text, word.index + word[0].length)
            if (new Set([...range.getClientRects()].map(r => Math.round(r.top))).size > 1) broken.push(word[0])
        }
    }
    return { cut, broken }
}"""


LONGEST = 9000  # px of a page of the guide, as it opens
OF_A_MODEL = 9500
LISTS = re.compile(r"models/(gallery/)?$|reference/")  # what is looked up has any length
# What the styles leave for later counts with its real height.
HEIGHT = """() => {
    for (const e of document.querySelectorAll(
        ".md-content__inner > :is(figure, .ep-block, .ep-scroll, .ep-walk), .ep-walk > li > ol > li, "
        + ".ep-tool > .ep-scroll"
    )) e.classList.add("ep-laid")
    return document.documentElement.scrollHeight
}"""


def too_long(page, path, width):
    """A line where the page is, before anything is unfolded."""
    page.set_viewport_size({"width": width, "height": 900})
    height = 0 if LISTS.match(path) else page.evaluate(HEIGHT)
    most = OF_A_MODEL if path.startswith("models/") else LONGEST
    return [f"{width}: the page is {height} px long: fold what not every reader wants"] if height > most else []


def off(page, width):
    """What is cut off at a width, and which words are broken, a line each."""
    page.set_viewport_size({"width": width, "height": 900})
    found = page.evaluate(MEASURE, width >= WHOLE)
    lines = [f"{width}: broken inside: {word}" for word in found["broken"]]
    if (more := overflow(page)) > 0:
        lines.append(f"{width}: the page is {more} px wider than the window")
    return lines + [f"{width}: {c['by']} px of {c['what']}" for c in found["cut"] if c["columns"] <= MANY]


@pytest.mark.parametrize("path", KINDS)
def test_nothing_is_cut_off(open_page, site, path):
    page = open_page(urljoin(site, path), viewport={"width": 1280, "height": 900})
    found = [line for width in (390, WHOLE) for line in too_long(page, path, width)]
    assert not found + [line for width in (390, WHOLE) for line in off(page, width)]


@pytest.mark.share(1)
@pytest.mark.slow("opens dozens of pages at four widths")
@pytest.mark.timeout(3600)
def test_nothing_is_cut_off_on_other_pages(open_page, site, site_folder):
    """A share of all pages but the models', and of the longest of the models' in each family, each at some widths."""
    page = open_page(site)
    lines = []
    models = defaultdict(list)
    for path in sorted(site_folder.glob("models/*/*/index.html")):
        models[path.parent.parent].append(path)
    chosen = {max(of_family, key=lambda path: path.stat().st_size) for of_family in models.values()}
    others = set(site_folder.rglob("index.html")) - {path for of_family in models.values() for path in of_family}
    for path in sampled(sorted(chosen | others), 80):
        name = f"{path.parent.relative_to(site_folder).as_posix()}/"
        address = urljoin(site, name)
        page.goto(address)
        widths = sampled(WIDTHS, 4, address)
        lines += [f"{address} {line}" for width in widths for line in too_long(page, name, width)]
        lines += [f"{address} {line}" for width in widths for line in off(page, width)]  # unfolds it
    assert not lines, "\n".join(lines)


def test_what_still_scrolls_says_so_and_keeps_head_and_names(open_page, site):
    page = open_page(urljoin(site, "models/"), viewport={"width": 390, "height": 844})
    table = page.locator(".ep-scroll").first
    assert "gradient" in table.evaluate("e => getComputedStyle(e).backgroundImage")
    assert table.get_attribute("tabindex") == "0" and table.get_attribute("aria-label")
    head, name = table.locator("thead th").nth(1), table.locator("tbody th").nth(30)
    top, left = head.bounding_box()["y"], name.bounding_box()["x"]
    table.evaluate("e => e.scrollBy(150, 900)")
    page.wait_for_timeout(100)
    assert name.bounding_box()["x"] == pytest.approx(left, abs=1)
    box = table.bounding_box()["y"]
    assert box - 1 <= head.bounding_box()["y"] <= max(top, box) + 1
    page.set_viewport_size({"width": 768, "height": 900})  # here there is room for the result beside the name
    until(page, "document.querySelector('.ep-keeps')")
    result = table.locator("tbody td").first
    table.evaluate("e => e.scrollTo(0, 0)")
    left = result.bounding_box()["x"]
    table.evaluate("e => e.scrollBy(150, 0)")
    page.wait_for_timeout(100)
    assert result.bounding_box()["x"] == pytest.approx(left, abs=1)


def test_the_heading_of_rows_stays_while_their_columns_scroll(open_page, site):
    page = open_page(urljoin(site, "models/gpt/gpt2/"), viewport={"width": 390, "height": 844})
    table = page.locator(".ep-scroll:has(.ep-tensors)")
    table.evaluate("e => { e.closest('details').open = true }")
    title = table.locator("tr.ep-part th > span").nth(1)
    left = title.bounding_box()["x"]
    assert table.evaluate("e => { e.scrollBy(150, 0); return e.scrollLeft }") == 150
    page.wait_for_timeout(100)
    assert title.bounding_box()["x"] == pytest.approx(left, abs=3)


def test_the_head_of_a_long_table_stays_while_the_page_scrolls(open_page, site):
    page = open_page(urljoin(site, "reference/macros/"), viewport={"width": 1280, "height": 900})
    row = page.locator(".ep-table:has(tbody tr:nth-child(60)) tbody tr").nth(50)
    row.scroll_into_view_if_needed()
    head = row.locator("xpath=ancestor::table").locator("thead th").first.bounding_box()
    assert 0 <= head["y"] < 100 and row.bounding_box()["y"] > head["y"]


def test_a_models_page_opens_with_its_sheet_on_one_screen(open_page, site):
    page = open_page(urljoin(site, "models/llama/llama3-8b/"), viewport={"width": 1280, "height": 900})
    ends = page.locator(".ep-map svg.wide, .ep-sizes, .ep-ways").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().bottom)"
    )
    assert len(ends) == 3 and max(ends) <= 900
    assert page.locator(".ep-map svg.narrow").is_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".ep-map svg.wide").is_hidden() and page.locator(".ep-map svg.narrow").is_visible()
    page.locator(".ep-map svg.narrow a").first.click()
    until(page, "location.hash.startsWith('#llama3-8b')")
    assert page.locator("details.ep-fold:has(.ep-tensors)").get_attribute("open") is not None
    page.locator(page.evaluate("'[id=\"' + location.hash.slice(1) + '\"]'")).wait_for()


def test_the_home_page_opens_with_the_map_of_a_model(open_page, site):
    page = open_page(site, viewport={"width": 1280, "height": 900})
    map_ = page.locator(".ep-map svg.wide").first
    assert map_.evaluate("e => e.getBoundingClientRect().bottom") <= 900
    addresses = map_.locator("a").evaluate_all("all => all.map(a => a.href.baseVal)")
    assert addresses and all(page.request.get(urljoin(page.url, address)).ok for address in addresses)
    for name in ("What a model costs", "Checked claims", "What fits", "What happens"):
        link = page.locator(".ep-hero").get_by_role("link", name=name)
        assert page.request.get(urljoin(page.url, link.get_attribute("href"))).ok
        assert link.evaluate("e => e.getBoundingClientRect().bottom") <= 900


def test_the_page_of_a_lost_address_leads_back(open_page, site):
    page = open_page(urljoin(site, "404.html"))
    links = page.locator(".md-content a").evaluate_all("all => all.map(a => a.href)")
    assert len(links) >= 7 and all(page.request.get(link).ok for link in links)
