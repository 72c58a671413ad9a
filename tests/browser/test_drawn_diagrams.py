"""Diagrams on the real site: what a browser makes of the drawings, their links, and the window that shows all."""

import re
from functools import partial
from urllib.parse import urljoin

import pytest
from chromium import accessibility, overflow, until
from copies import ROOT
from fuzzing import CI
from sampling import sampled

from macros.catalogue import presets
from macros.views.diagrams import model_diagrams, outline
from macros.views.diagrams.drawing import laid_out
from macros.views.kit import text_width

pytestmark = pytest.mark.browser

# Pages with a diagram, of each sort: a dense model, kinds of layers, experts with latent attention, a state of fixed
# size.
PAGES = (
    "what-happens/",
    "models/gpt/gpt2/",
    "models/deepseek/deepseek-v3.2/",
    "models/jamba/jamba-v0.1/",
)
WIDE = "models/deepseek/deepseek-v3.2/"
NAME = "Llama 3 70B: from token ids to next-token scores"


def unfolded(page):
    """The page with all its parts open."""
    page.evaluate("for (const folded of document.querySelectorAll('details.ep-fold')) folded.open = true")
    return page


def canvases(page, expression):
    return page.locator("figure.diagram > .ep-canvas").evaluate_all(f"all => all.map(e => {expression})")


@pytest.mark.parametrize("path", PAGES)
def test_a_drawing_fits_its_place_and_a_phone_scrolls_it_by_itself(open_page, site, path):
    page = unfolded(open_page(urljoin(site, path)))
    assert all(canvases(page, "e.querySelectorAll('.node').length > 10 && e.clientWidth > 500"))
    assert all(canvases(page, "e.scrollWidth <= e.clientWidth")) and overflow(page) == 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert overflow(page) == 0
    for scrolls, background in canvases(page, "[e.scrollWidth > e.clientWidth, getComputedStyle(e).backgroundImage]"):
        assert not scrolls or background.count("gradient") == 4  # the edge is shaded where it goes on
    natural = canvases(
        page, "[e.firstElementChild.getBoundingClientRect().width, e.firstElementChild.viewBox.baseVal.width]"
    )
    assert all(is_now == as_drawn for is_now, as_drawn in natural)


def test_every_label_is_inside_its_box(open_page, site):
    page = unfolded(open_page(urljoin(site, WIDE)))
    page.evaluate("document.fonts.ready")
    outside = page.locator(".ep-drawing .node").evaluate_all("""all => all.filter(node => {
        const outline = node.firstElementChild.getBBox()
        return [...node.querySelectorAll("text")].some(text => {
            const { x, y, width, height } = text.getBBox()
            return x < outline.x + 4 || x + width > outline.x + outline.width - 4
                || y < outline.y - 1 || y + height > outline.y + outline.height + 1
        })
    }).map(node => node.textContent)""")
    assert not outside


# The texts that are wider than their box: in diagrams, in the groups of these, in the gallery's outlines.
OUTSIDE = r"""() => {
    const boxes = path => {
        const found = [], size = {}
        let x = 0, y = 0, start
        for (const [, command, rest] of path.getAttribute("d").matchAll(/([a-z])([^a-z]*)/g)) {
            const n = (rest.match(/-?[\d.]+/g) ?? []).map(Number)
            if (command === "m") {
                start = { x: (x += n[0]), y: (y += n[1]) }
                size.width = size.height = 0
            } else if (command === "z") {
                if (size.height) found.push({ ...start, ...size })
                ;({ x, y } = start)
            } else {
                if (command === "h") (x += n[0]), (size.width ||= n[0])
                if (command === "v") (y += n[0]), (size.height ||= n[0])
                if (command === "a") (x += n[5]), (y += n[6])
            }
        }
        return found
    }
    const around = (drawing, { x, y, width, height }) => [...drawing.querySelectorAll(".p, .a")].flatMap(boxes)
        .find(box => Math.abs(box.x + box.width / 2 - x - width / 2) < 3 && box.y < y + height / 2
            && y + height / 2 < box.y + box.height)
    return [...document.querySelectorAll(".node, .ep-boxes > g, .ep-outline")].flatMap(node =>
        [...node.querySelectorAll("text:not(.g)")].filter(text => {
            const own = text.getBBox()
            const shape = node.querySelector("rect") ?? node.querySelector("path, circle")
            const box = node.matches(".ep-outline") ? around(node, own) : shape.getBBox()
            return !box || own.x < box.x || own.x + own.width > box.x + box.width
        }).map(text => text.textContent))
}"""


def outlined(model: presets.Model) -> str:
    drawn = outline.drawn(outline.outline(model))
    box = f"-4 -4 {drawn.width} {drawn.height}"
    return f'<svg class="ep-outline" viewBox="{box}" width="{drawn.width}">{drawn.content}</svg>'


@pytest.mark.parametrize("font", ['"DejaVu Sans", Verdana', "monospace", "serif"])
def test_every_label_is_inside_its_box_in_any_font(browser, font):
    """As where the site's own font comes late, and none that is about as wide is installed."""
    drawings = []
    for slug in ("gpt2", "llama3-8b", "deepseek-v3.2", "jamba-v0.1", "qwen3-next-80b-a3b", "gemma3-4b", "bert-base"):
        model = presets.model(slug)
        drawings += [model_diagrams.pipeline(slug), outlined(model)]
        drawings += [model_diagrams.block(slug, kind) for kind in model_diagrams.layer_kinds(model)]
    css = (ROOT / "docs/assets/components.css").read_text("utf-8")
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.set_content(f"<style>{css} svg, svg * {{ font-family: {font} !important }}</style>{''.join(drawings)}")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.locator(".node text").count() > 100 and page.locator(".ep-outline text").count() > 50
    assert page.evaluate(OUTSIDE) == []
    page.close()


def test_the_font_is_as_wide_as_was_counted(open_page, site):
    page = open_page(site)
    measured = page.evaluate(
        """async characters => {
        const context = document.createElement("canvas").getContext("2d"), widths = {}
        for (const weight of [400, 600]) {
            context.font = `${weight} 1000px "Source Sans 3"`
            await document.fonts.load(context.font)
            widths[weight] = [...characters].map(c => context.measureText(c).width)
        }
        return widths
    }""",
        "".join(text_width.WIDTHS[400]),
    )
    for weight, widths in text_width.WIDTHS.items():
        assert [round(w) for w in measured[str(weight)]] == list(widths.values()), "mend: the numbers measured here"


def test_the_labels_drawn_are_those_that_were_written(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    drawing = model_diagrams.whole(presets.model("llama3-70b"), "d_model")
    laid = laid_out(drawing, partial(model_diagrams.shapes, sizes=drawing.values))
    drawn = page.locator(".ep-drawing .node").evaluate_all("all => all.map(e => e.textContent)")
    assert drawn == [" ".join(line.content for line in lines) for lines in laid.texts]


def in_mermaid():
    """(model, source) of every drawing, one of those that differ in digits only."""
    sources = {}
    for slug in presets.paths():
        if presets.preset(slug).config is not None:
            model = presets.model(slug)
            drawings = [model_diagrams.whole(model, "d_model")]
            drawings += [model_diagrams.layer(model, kind, None) for kind in model_diagrams.layer_kinds(model)]
            for drawing in drawings:
                source = model_diagrams.mermaid(drawing, model_diagrams.section_links(lambda page: page))
                sources.setdefault(re.sub(r"\d", "0", source), (slug, source))
    return list(sources.values())


def with_every_line(sources):
    """As many of them as it takes for each line to occur, whatever its digits."""
    seen, chosen = set(), []
    for slug, source in sources:
        lines = {re.sub(r"\d+", "0", line) for line in source.split("\n") if not line.startswith("  class ")}
        if lines - seen:
            seen |= lines
            chosen.append((slug, source))
    return chosen


def test_mermaid_reads_every_diagram(open_page, site):
    """Mermaid takes 60 ms for a diagram: it has some that together have every line, and in CI an eighth of all. What
    needs more edges than it takes by itself says so."""
    sources = with_every_line(in_mermaid()) + (sampled(in_mermaid(), 8) if CI else [])
    page = open_page(site, bypass_csp=True)  # its sanitizer asks for a policy of its own; the site ships no Mermaid
    page.route("**/mermaid.mjs", lambda route: route.fulfill(path=ROOT / "tests/vendor/mermaid-flowchart.mjs"))
    told = page.evaluate(
        """async ([address, sources]) => {
        const { default: mermaid } = await import(address), told = []
        for (const source of sources) {
            mermaid.initialize({ maxEdges: Number(/%% (\\d+) edges/.exec(source)?.[1] ?? 500) })
            const { diagramType } = await mermaid.parse(source).catch(error => ({ diagramType: error.message }))
            told.push(diagramType)
        }
        return told
    }""",
        [urljoin(site, "mermaid.mjs"), [*(source for _, source in sources), "flowchart TB\n  n0[[["]],
    )
    assert "Parse error" in told.pop()
    assert not [(slug, said) for (slug, _), said in zip(sources, told) if not said.startswith("flowchart")]


def test_what_is_copied_is_the_source(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    figure = page.locator("figure.diagram")
    figure.get_by_text("The same as Mermaid, to copy").click()
    shown = figure.locator(".diagram-source code").inner_text()
    link = model_diagrams.section_links(
        lambda source: f"../{source.removesuffix('.md')}/".replace("what-happens/", "").replace("//", "/")
    )
    written = model_diagrams.mermaid(model_diagrams.whole(presets.model("llama3-70b"), "d_model"), link)
    assert [line for line in shown.split("\n") if "click" not in line] == [
        line for line in written.split("\n") if "click" not in line
    ]


def test_every_node_leads_to_a_heading_that_is_there(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    drawn = page.locator(".ep-drawing a").evaluate_all("all => all.map(a => new URL(a.href.baseVal, location).href)")
    listed = page.locator(".diagram-steps a:not(.ep-term *)").evaluate_all("all => all.map(a => a.href)")
    assert drawn == listed and len(drawn) == page.locator(".ep-drawing .node").count()
    for address in sorted(set(drawn)):
        html = page.request.get(address).text()
        assert f'id="{address.partition("#")[2]}"' in html or "#" not in address, address


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_link_leads_there_and_back(open_page, site, by):
    page = open_page(urljoin(site, "what-happens/"))
    link = page.locator(".ep-drawing a", has_text="Query projection")
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # as a reader comes there, with a visible focus
    assert link.evaluate("e => e === document.activeElement && getComputedStyle(e).outlineStyle") == "solid"
    link.click() if by == "mouse" else page.keyboard.press("Enter")
    page.wait_for_url("**/attention-deep-dive/#three-vectors-for-each-token")
    page.locator("#three-vectors-for-each-token").wait_for()
    page.go_back()
    page.wait_for_url("**/what-happens/")
    page.locator("figure.diagram > .ep-open").wait_for()


def test_opened_the_whole_drawing_fits_and_can_be_looked_at_nearer(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    figure = page.locator("figure.diagram").first
    button = figure.get_by_role("button", name="Open full diagram")
    high = figure.evaluate("e => e.offsetHeight")
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=NAME)
    place = dialog.get_by_role("group", name="Diagram", exact=True)
    drawing = dialog.locator("svg")

    def fits():
        return place.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")

    assert drawing.locator(".node").count() == figure.locator(".ep-canvas .node").count() and fits()
    assert not accessibility(page, "light")
    width = drawing.bounding_box()["width"]
    page.keyboard.press("+")
    dialog.get_by_role("button", name="Zoom in").click()
    assert drawing.bounding_box()["width"] == pytest.approx(1.25**2 * width, abs=2) and not fits()
    place.focus()
    before = place.evaluate("e => e.scrollTop")
    page.keyboard.press("ArrowDown")
    until(page, "before => document.activeElement.scrollTop > before", arg=before)
    middle = place.bounding_box()
    x, y = middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2
    before = place.evaluate("e => e.scrollTop")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 60, steps=4)
    page.mouse.up()
    assert place.evaluate("e => e.scrollTop") > before + 40
    page.keyboard.press("0")
    assert fits()
    page.keyboard.press("Escape")
    assert not dialog.count() and button.evaluate("e => e === document.activeElement")
    assert figure.evaluate("e => e.offsetHeight") == high


def test_a_link_in_the_whole_drawing_leads_on(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    unfolded(page).get_by_role("button", name="Open full diagram").first.click()
    page.get_by_role("dialog").locator("svg a").first.click()
    page.wait_for_url("**/what-happens/tokens/")
    until(page, "!document.querySelector('dialog')")
    page.get_by_role("link", name="Home").first.click()  # nothing is left in front of the page
    page.wait_for_url(site)


@pytest.mark.parametrize("path", [WIDE, "what-happens/"])
def test_nothing_moves(open_page, site, path):
    """Nor does a font that comes late: here none comes, elsewhere the tests wait for it and take it."""
    page = open_page(site)
    page.route("**/*.woff2", lambda route: route.abort())
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(all => all.getEntries().forEach(e => moved += e.value))"
        ".observe({ type: 'layout-shift', buffered: true })"
    )
    page.goto(urljoin(site, path))
    page.locator("figure.diagram > .ep-open").first.wait_for(state="attached")
    page.wait_for_timeout(300)
    open_page.complaints[:] = [said for said in open_page.complaints if "ERR_FAILED" not in said]  # the fonts
    assert page.evaluate("moved") < 0.01


@pytest.mark.parametrize("path", [WIDE, "models/gpt/gpt2/"])
def test_a_drawing_fits_on_paper(open_page, site, path):
    page = unfolded(open_page(urljoin(site, path), viewport={"width": 700, "height": 900}))
    figure = page.locator("figure.diagram").first
    page.emulate_media(media="print")
    assert figure.locator("svg").evaluate(
        "e => { const { width, height } = e.getBoundingClientRect()"
        "; return [width <= e.parentElement.clientWidth + 1, height < 850 && height > 100] }"
    ) == [True, True]
    assert not figure.get_by_role("button", name="Open full diagram").is_visible()
    assert not figure.locator(".diagram-source").is_visible()


def test_without_scripts_the_drawing_stands_there_with_its_links(open_page, site):
    page = open_page(urljoin(site, "what-happens/"), java_script_enabled=False)
    figure = page.locator("figure.diagram")
    assert figure.locator("svg .node").first.is_visible() and not figure.locator("li").first.is_visible()
    figure.get_by_text("The same, step by step").click()
    assert figure.locator("li").first.is_visible()
    figure.locator("svg a", has_text="Query projection").click()
    page.wait_for_url("**/attention-deep-dive/#three-vectors-for-each-token")
