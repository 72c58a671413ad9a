"""Diagrams on the real site: drawn as they were written, their links lead to the pages, no name becomes markup."""

from html import escape
from urllib.parse import urljoin

import pytest
from conftest import accessibility, overflow

from macros.catalogue import presets
from macros.views import diagrams

pytestmark = pytest.mark.browser

HOSTILE = (
    'end"] --> n0; click n0 "javascript:alert(1)" <script>alert(2)</script> #quot; `**x**` <br/> [y](z) & %% subgraph'
)

# Pages with a diagram, of each sort: a dense model, kinds of layers, experts with latent attention, a state of fixed
# size.
PAGES = (
    "what-happens/",
    "what-happens/model-layers/",
    "models/gpt/gpt2/",
    "models/gemma/gemma2-2b/",
    "models/deepseek/deepseek-v3/",
    "models/mamba/mamba-130m/",
    "models/jamba/jamba-v0.1/",
)


def draw(figure):
    """Scroll to a diagram, and wait until it is drawn."""
    figure.scroll_into_view_if_needed()
    figure.locator("svg").wait_for()
    return figure


def draw_all(page):
    page.evaluate("for (const folded of document.querySelectorAll('details.ep-fold')) folded.open = true")
    figures = page.locator("figure.diagram").all()
    assert figures
    return [draw(figure) for figure in figures]


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("path", PAGES)
def test_every_diagram_is_drawn_with_all_its_nodes(open_page, site, path):
    page = open_page(urljoin(site, path))
    for figure in draw_all(page):
        entries = figure.locator("li:not(:has(li))")
        assert figure.locator("svg .node").count() == entries.count()
        assert figure.locator("svg .node.data, svg .node.weight, svg .node.op").count() == entries.count()
        assert figure.locator("svg a").count() == entries.count()
        assert figure.locator("details").get_attribute("open") is None
    assert overflow(page) == 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert overflow(page) == 0, "a diagram scrolls by itself"


def test_every_node_of_llama_3_70b_leads_to_a_page_that_is_there(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    [figure] = draw_all(page)
    drawn = {urljoin(page.url, a) for a in figure.locator("svg a").evaluate_all("all => all.map(a => a.href.baseVal)")}
    listed = {
        urljoin(page.url, a)
        for a in figure.locator("details a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    }
    assert (
        drawn
        == listed
        == {
            urljoin(site, f"what-happens/{name}/")
            for name in (
                "tokens",
                "embeddings",
                "model-layers",
                "attention-deep-dive",
                "ffn-deep-dive",
                "final-vector-to-token",
                "kv-cache",
            )
        }
    )
    assert all(page.request.get(address).ok for address in drawn)


def test_the_labels_drawn_are_those_that_were_written(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    [figure] = draw_all(page)
    drawing = diagrams.whole(presets.model("llama3-70b"), "d_model")
    written = [
        item.sign
        or " ".join(
            [
                item.title,
                diagrams.in_text(item.shape),
                *(
                    [f]
                    if (f := diagrams.in_figures(item.shape, drawing.values)) != diagrams.in_text(item.shape)
                    else []
                ),
            ]
        )
        for item in drawing.top.items()
    ]
    drawn = [" ".join(node.locator("tspan.row").all_text_contents()) for node in figure.locator("svg .node").all()]
    assert sorted(words(d) for d in drawn) == sorted(words(w) for w in written)


def test_a_hostile_name_is_drawn_as_text(open_page, site):
    page = open_page(site)
    address = urljoin(site, "what-happens/")

    def altered(route):
        html = route.fetch().text()
        start = html.index('<pre class="mermaid-source"')
        end = html.index("</pre>", start)
        source = html[start:end].replace("Token ids", escape(diagrams.inert(HOSTILE)), 1)
        route.fulfill(body=html[:start] + source + html[end:], content_type="text/html")

    page.route(address, altered)
    page.goto(address)
    [figure] = draw_all(page)
    first = figure.locator("svg .node.data").filter(has_text="javascript")
    assert words(" ".join(first.locator("tspan.row").all_text_contents())).startswith(HOSTILE)
    assert figure.locator("svg script, svg strong, svg em").count() == 0
    assert not figure.locator("svg a").evaluate_all("all => all.filter(a => /script/.test(a.href.baseVal)).length")
    box, inside = first.locator("rect, path").first.bounding_box(), first.locator("text").bounding_box()
    assert inside["x"] >= box["x"] - 1 and inside["x"] + inside["width"] <= box["x"] + box["width"] + 1


@pytest.mark.parametrize("path", ["what-happens/", "models/llama/llama3-8b/"])
def test_axe_finds_nothing_serious(open_page, site, path):
    page = open_page(urljoin(site, path))
    draw_all(page)
    assert not accessibility(page)


def test_a_box_title_is_on_top_of_the_lines(open_page, site):
    page = open_page(urljoin(site, "what-happens/"))
    [figure] = draw_all(page)
    covered = figure.locator(".cluster-label").evaluate_all("""all => all.map(title => {
        const background = title.querySelector(".background"), ground = background.getBoundingClientRect()
        const words = title.querySelector("text").getBoundingClientRect()
        const lines = title.closest(".root").querySelector(".edgePaths")
        return ground.width > words.width && ground.height >= words.height
            && getComputedStyle(background).fill !== "none"
            && !!(lines.compareDocumentPosition(title) & Node.DOCUMENT_POSITION_FOLLOWING)
    })""")
    assert covered and all(covered)


WIDE, NARROW = "models/deepseek/deepseek-v3.2/", "models/gpt/gpt2/"


def test_a_wide_drawing_shows_where_it_goes_on_and_opens_whole(open_page, site):
    page = open_page(urljoin(site, WIDE))
    figure = draw(page.locator("figure.diagram").first)
    box, button = figure.locator(":scope > .mermaid"), figure.get_by_role("button", name="Open the whole drawing")
    mask = "e => getComputedStyle(e).maskImage"
    assert box.get_attribute("data-more") == "left right" and box.evaluate(mask) != "none"
    box.evaluate("e => e.scrollLeft = 0")
    page.wait_for_function("document.querySelector('.mermaid').dataset.more === 'right'")
    button.focus()
    high = figure.evaluate("e => e.offsetHeight")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="DeepSeek-V3.2: from token ids to next-token scores")
    assert dialog.locator("svg .node").count() and not box.locator("svg").count()
    whole = dialog.get_by_role("group", name="Diagram")
    inside = whole.evaluate(
        "e => { const r = e.getBoundingClientRect(); return [r.right <= innerWidth, r.bottom <= innerHeight, "
        "e.scrollHeight > e.clientHeight, e.scrollWidth > e.clientWidth] }"
    )
    assert inside == [True, True, True, True]  # both scroll bars are in view
    page.keyboard.press("ArrowDown")
    page.wait_for_function("document.activeElement.scrollTop > 0")
    assert figure.evaluate("e => e.offsetHeight") == high and not accessibility(page, "light")
    page.keyboard.press("Escape")
    box.locator("svg").wait_for()
    assert not dialog.count() and button.evaluate("e => e === document.activeElement")
    assert figure.evaluate("e => e.offsetHeight") == high


def test_a_link_in_the_whole_drawing_leads_on_without_a_reload(open_page, site):
    page = open_page(urljoin(site, WIDE))
    page.evaluate("window.notReloaded = true")
    page.wait_for_load_state("networkidle")  # the sitemap, which instant navigation asks for
    draw(page.locator("figure.diagram").first).get_by_role("button", name="Open the whole drawing").click()
    page.get_by_role("dialog").locator("svg a").first.click()
    page.wait_for_url("**/what-happens/tokens/")
    page.wait_for_function("!document.querySelector('dialog')")
    assert page.evaluate("window.notReloaded")
    page.get_by_role("link", name="Home").first.click()  # nothing is left in front of the page
    page.wait_for_url(site)


def test_a_drawing_that_fits_has_no_button(open_page, site):
    page = open_page(urljoin(site, NARROW))
    for figure in draw_all(page):
        assert (
            figure.locator("button").count() == 0
            and figure.locator(".mermaid").evaluate("e => getComputedStyle(e).maskImage") == "none"
        )


@pytest.mark.parametrize("path", [WIDE, NARROW, "what-happens/"])
def test_nothing_moves_when_a_drawing_comes(open_page, site, path):
    page = open_page(site)
    page.add_init_script(
        "window.moved = 0; new PerformanceObserver(all => all.getEntries().forEach(e => moved += e.value))"
        ".observe({ type: 'layout-shift', buffered: true })"
    )
    page.goto(urljoin(site, path))
    page.locator("figure.diagram svg").first.wait_for()
    page.wait_for_timeout(300)
    assert page.evaluate("moved") < 0.01


@pytest.mark.parametrize("path", [WIDE, NARROW])
def test_a_drawing_fits_on_paper(open_page, site, path):
    page = open_page(urljoin(site, path), viewport={"width": 700, "height": 900})
    figure = draw(page.locator("figure.diagram").first)
    page.emulate_media(media="print")
    assert figure.locator("svg").evaluate(
        "e => { const { width, height } = e.getBoundingClientRect()"
        "; return [width <= e.parentElement.clientWidth + 1, height < 850] }"
    ) == [True, True]
    assert figure.locator(".mermaid").evaluate("e => getComputedStyle(e).maskImage") == "none"
    assert not figure.get_by_role("button", name="Open the whole drawing").is_visible()


def test_without_scripts_the_figure_says_what_to_read(open_page, site):
    page = open_page(urljoin(site, NARROW), java_script_enabled=False)
    figure = page.locator("figure.diagram").first
    assert (
        figure.locator("noscript p").is_visible()
        and figure.locator("noscript").inner_text()
        == "The picture needs JavaScript; the list below has the same steps."
    )
    assert figure.locator("li").first.is_visible()
