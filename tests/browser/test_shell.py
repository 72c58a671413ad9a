"""The shell of the site on a few pages of its own: diagrams, formulas, theme, narrow screens, accessibility."""

import re
import shutil
from urllib.parse import urljoin

import pytest
from chromium import accessibility, overflow, until
from copies import ROOT
from mkdocs.commands.build import build
from mkdocs.config import load_config
from serving import served

from macros.catalogue import presets
from macros.views.diagrams import model_diagrams
from macros.views.trace.walkthrough import walkthrough

pytestmark = pytest.mark.browser


def figure(label, target):
    """What a view emits: a drawing whose nodes all lead to one page."""
    layer = model_diagrams.layer(presets.model("gpt2"), "layer", "d_ff")
    return model_diagrams.figure(layer, label, lambda page: target)


PAGES = {
    "index.md": """# Shell

Inline $12{,}345 \\cdot L_{i}^2$ and

$$
\\begin{aligned}
a &= \\left\\lfloor \\frac{n}{\\sqrt{d_\\text{head}}} \\right\\rfloor \\bmod 3 \\\\
b &= \\operatorname{softmax}
  \\left(\\sum_{i=1}^{n} \\underbrace{12 D^2}_{\\text{one block}}\\right) + \\min(x, y)
\\end{aligned}
$$

$$
8030261248 = 128256 \\cdot 4096 +
32 \\cdot (4096 \\cdot 4096 + 2 \\cdot 4096 \\cdot 1024 + 4096 \\cdot 4096 + 3 \\cdot 4096 \\cdot 14336)
$$

## Diagram

FIGURE Pipeline: deep/page/

## Table

<div class="ep-scroll" tabindex="0" role="group" aria-label="Parameters">
<table class="ep-table"><caption>Parameters</caption>
<thead><tr><th>tensor</th><th>shape</th><th class="num">parameters</th><th class="num">share</th></tr></thead>
<tbody><tr><th scope="row"><code>model.layers.{i}.self_attn.q_proj.weight</code></th><td>[N·H, D]</td>
<td class="num">16,777,216</td><td class="num">50%</td></tr>
<tr class="accent"><th scope="row"><code>model.layers.{i}.self_attn.k_proj.weight</code></th><td>[K·H, D]</td>
<td class="num">4,194,304</td><td class="num">5%</td></tr>
<tr class="total"><th scope="row">total</th><td></td><td class="num">8,030,261,248</td><td class="num">100%</td></tr>
</tbody></table></div>
<p class="ep-conventions">A multiply-add is 2 FLOPs.</p>

| a | b |
| --- | ---: |
| x | 1 |

<ol class="ep-walk"><li><p><strong>Embedding</strong></p><p>row of <code>wte</code></p></li>
<li class="accent"><p>Attention</p></li></ol>

<div class="ep-cards"><div><h3><a href="deep/page/">GPT-2</a></h3><p>124 million</p></div>
<div><h3>Llama</h3><p>8 billion</p></div></div>
""",
    "deep/page.md": """# Deep

!!! note "A note"
    Dimensions remember their symbols.

```python
def f(x: int) -> str:  # a comment
    return "2" * x if x is not None else lambda y: 3.0
```

<p class="ep-error">preset "llama3-8B": unknown</p>

[Elsewhere](https://elsewhere.example/) and [home](../index.md).
<div style="height: 4000px"></div>

FIGURE Far below: ../../
""",
    "walks.md": "# Walks\n\nFIGURE Of GPT-2: ../\n\nWALK llama3-8b\n\nWALK gpt2\n",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """The address of these pages, built with the theme, styles and Markdown extensions of the real mkdocs.yml."""
    folder = tmp_path_factory.mktemp("shell")
    for name, text in PAGES.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(r"^FIGURE (.*): (.*)$", lambda m: figure(m[1], m[2]), text, flags=re.M)
        text = re.sub(r"^WALK (.*)$", lambda m: walkthrough(m[1]), text, flags=re.M)
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "assets", folder / "docs" / "assets")
    with served(folder / "site") as address:
        config = load_config(
            str(ROOT / "mkdocs.yml"),
            docs_dir=str(folder / "docs"),
            site_dir=str(folder / "site"),
            site_url=address,
            repo_url="https://example.org/someone/every-parameter",
            plugins=[],
            hooks=[],
            strict=True,
            nav=[{"Home": "index.md"}, {"Deep": "deep/page.md"}, {"Walks": "walks.md"}],
        )
        build(config)
        yield address


def test_the_outlines_of_a_drawing_follow_the_palette_and_differ_by_more_than_colour(open_page, shell):
    fills = []
    for scheme in ("light", "dark"):
        drawing = open_page(shell, color_scheme=scheme).locator(".ep-drawing")
        first = {
            kind: drawing.locator(f".node.{kind} > :is(rect, path, circle)").first.evaluate(
                "e => { const { fill, strokeDasharray, strokeWidth } = getComputedStyle(e)"
                "; return [fill, strokeDasharray, parseFloat(strokeWidth)] }"
            )
            for kind in ("data", "weight:not(.accent)", "accent", "op:not(.accent)")
        }
        fills.append([fill for fill, _, _ in first.values()])
        assert len(set(fills[-1])) == 4
        assert first["weight:not(.accent)"][1] != "none" and first["op:not(.accent)"][1] == "none"
        assert first["accent"][2] >= 3
    assert not set(fills[0]) & set(fills[1])


def test_without_scripts_the_drawing_and_the_formulas_stand(open_page, shell):
    page = open_page(shell, java_script_enabled=False)
    assert page.locator("figure.diagram svg").is_visible()
    assert page.locator("math").first.is_visible() and page.locator(".ep-math").count() == 2
    aligned = page.locator("math mtable").bounding_box()
    assert aligned["height"] > 60


def test_a_formula_has_the_font_that_stretches(open_page, shell):
    page = open_page(shell)
    page.evaluate("document.fonts.ready")
    assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"', 'x')")
    page.wait_for_function("""() => { const m = [...document.querySelectorAll("math mo")]
        const [high, plain] = ["⌊", "+"].map(sign => m.find(e => e.textContent === sign).getBoundingClientRect().height)
        return high > 1.8 * plain }""")  # a page that is busy swaps its font a moment after it is there


def test_no_library_is_fetched_and_no_math_font_without_a_formula(open_page, shell):
    asked = []
    page = open_page(urljoin(shell, "deep/page/"))
    page.on("request", lambda request: asked.append(request.url))
    page.reload(wait_until="networkidle")
    vendored = {url.rpartition("/")[2] for url in asked if "/vendor/" in url}
    assert asked and vendored <= {"source-sans-3-latin-wght-normal.woff2", "source-sans-3-latin-400-italic.woff2"}


def test_what_the_templates_leave_to_a_script(open_watched, site):
    """Everything is loaded once; colors, header, headings, frames, copies, the drawer, keys and folded parts."""
    page, asked = open_watched(urljoin(site, "reference/publishing/"), viewport={"width": 1280, "height": 800})
    page.wait_for_load_state("networkidle")
    loaded = [address for address in asked if address.endswith((".css", ".woff2", ".js", ".mjs"))]
    assert len(loaded) == len(set(loaded)) > 5, loaded
    # Colors: those of the system, light, dark, and as chosen on the next page.
    scheme, button = "document.body.dataset.mdColorScheme", page.locator("[data-md-component=palette] label:visible")
    assert page.evaluate(scheme) == "default"
    page.emulate_media(color_scheme="dark")
    until(page, f"{scheme} === 'slate'")
    button.click()
    until(page, f"{scheme} === 'default'")
    button.click()
    page.emulate_media(color_scheme="light")
    assert page.evaluate(scheme) == "slate"
    page.route("**/theme.js", lambda route: route.fulfill(body="", content_type="text/javascript"))  # before it comes
    page.goto(urljoin(site, "reference/publishing/"))
    assert page.evaluate(scheme) == "slate"
    page.unroute("**/theme.js")
    page.reload()
    page.wait_for_load_state("networkidle")  # a key that is pressed before the script came is lost
    page.get_by_role("radio", name="Switch to system preference").press("Enter")
    until(page, f"{scheme} === 'default'")
    # The header, the way back and the list of headings follow.
    title, top = page.locator("[data-md-component=header-title]"), page.get_by_role("button", name="Back to top")
    listed = page.locator(".md-sidebar--secondary .md-nav__link")
    last = listed.last.inner_text()
    assert "--active" not in title.get_attribute("class") and not top.is_visible()
    page.mouse.wheel(0, 1e6)
    until(page, "document.querySelector('.md-header__title--active')")
    until(
        page,
        "last => document.querySelector('.md-sidebar--secondary .md-nav__link--active').innerText === last",
        arg=last,
    )
    assert (
        page.locator(".md-sidebar--secondary .md-nav__link--passed").count() == listed.count() and not top.is_visible()
    )
    page.mouse.wheel(0, -200)
    top.click()
    until(page, "scrollY === 0 && !document.querySelector('.md-nav__link--passed')")
    # Tables have a frame of their own; tabs are marked; a block of code can be copied.
    assert page.locator(".md-content table:not([class])").count() == page.locator(".md-typeset__table > table").count()
    page.get_by_text("Caddy", exact=True).first.click()
    until(page, "parseFloat(document.querySelector('.tabbed-labels').style.getPropertyValue('--md-indicator-x')) > 0")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy to clipboard").first.click()
    page.get_by_role("status").get_by_text("Copied to clipboard").wait_for()
    code = page.locator(".md-content pre > code").first.text_content()
    assert code and page.evaluate("navigator.clipboard.readText()") == code
    # What is folded opens for a link into it, and on paper.
    box = page.locator(".md-content details").last
    box.evaluate("box => { box.open = false; box.lastElementChild.id = 'inside'; location.hash = 'inside' }")
    until(page, "document.getElementById('inside').closest('details').open")
    box.evaluate("box => { box.open = false; dispatchEvent(new Event('beforeprint')) }")
    assert box.evaluate("box => box.open")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not box.evaluate("box => box.open")
    # The drawer of a phone closes for a link and for Escape; keys lead to the page before and the next.
    page.set_viewport_size({"width": 390, "height": 844})
    drawer = page.locator("#__drawer")
    page.locator("header label[for=__drawer]").click()
    assert drawer.is_checked()
    page.keyboard.press("Escape")
    assert not drawer.is_checked()
    after = page.locator("link[rel=next]").evaluate("link => link.href")
    page.keyboard.press("n")
    page.wait_for_url(after)
    until(page, "document.documentElement.classList.contains('js')")
    page.keyboard.press("p")
    page.wait_for_url("**/reference/publishing/**")


@pytest.mark.parametrize("hidden", ["true", "false"])
def test_scripts_come_too_where_no_paint_is_told(open_page, shell, hidden):
    """At once where the tab is hidden, else after three seconds."""
    where = f"""
        PerformanceObserver.prototype.observe = () => 0
        Object.defineProperty(document, "hidden", {{ value: {hidden} }})
        const later = setTimeout, delays = window.delays = []
        window.setTimeout = (task, delay) => (delays.push(delay), later(task, delay))
    """
    page = open_page(shell, before=lambda page: page.add_init_script(where))
    until(page, "document.documentElement.classList.contains('js')")
    assert page.evaluate("delays.includes(3000)") == (hidden == "false")


def test_with_storage_blocked_no_script_fails(open_page, shell):
    """The theme’s own scripts ask for the chosen palette in their first line, and keep it for the page."""
    blocked = """
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, { configurable: true, get() { throw new DOMException(name) } })
    """
    errors: list[str] = []

    def before(page):
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(blocked)

    page = open_page(shell, before=before)
    until(page, "document.documentElement.classList.contains('js')")
    assert page.evaluate("__md_get('__palette') === null")
    page.locator("label[for^=__palette]:visible").first.click()
    until(page, "__md_get('__palette') !== null")
    assert not errors


def test_a_walk_lights_no_diagram_of_another_model(open_page, shell):
    """Not even where a slug is no selector; without a diagram of its model it shows none."""
    page = open_page(urljoin(shell, "walks/"), viewport={"width": 1280, "height": 800})
    other, own = page.locator(".ep-stepper").first, page.locator(".ep-stepper").last
    own.get_by_text("Step 1 of ").wait_for()
    for _ in range(4):  # into a layer, which is what is drawn
        own.get_by_role("button", name="Next").click()
    assert own.locator(".node.lit").count() == 1
    assert other.get_by_text("Step 1 of ").is_visible() and not other.locator(".ep-drawing").count()
    walks = page.locator("ol.ep-walk, figure.diagram")
    assert walks.evaluate_all("all => all.map(e => e.dataset.model)") == ["gpt2", "llama3-8b", "gpt2"]
    odd = """all => all.forEach(e => { if (e.dataset.model === "gpt2") e.dataset.model = `"]</script>` })"""
    walks.evaluate_all(odd)
    own.get_by_role("button", name="Back").click()
    other.get_by_role("button", name="Next").click()
    assert own.locator(".ep-drawing").count() == 1 and not other.locator(".ep-drawing").count()


@pytest.mark.parametrize("path", ["", "deep/page/"])
def test_nothing_is_wider_than_a_phone(open_page, shell, path):
    page = open_page(urljoin(shell, path), viewport={"width": 390, "height": 844})
    assert overflow(page) == 0


@pytest.mark.share(2)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["", "deep/page/"])
def test_axe_finds_nothing(open_page, shell, path, width):
    page = open_page(urljoin(shell, path), viewport={"width": width, "height": 900})
    assert not accessibility(page)


def test_on_paper_the_list_is_open_and_no_source_is_seen(open_page, shell):
    page = open_page(urljoin(shell, "deep/page/"))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.locator(".diagram-source").first.is_visible()
    assert page.locator("figure[aria-label='Far below'] ol").first.is_visible()
    after = "e => getComputedStyle(e, '::after').content"
    assert "https://elsewhere.example/" in page.get_by_role("link", name="Elsewhere").evaluate(after)
    assert page.get_by_role("link", name="home", exact=True).evaluate(after) == "none"


def test_the_home_page_of_the_whole_site_opens(page):
    assert page.locator("h1").count() == 1
    assert overflow(page) == 0
