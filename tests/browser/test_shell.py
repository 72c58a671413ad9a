"""The shell of the site on a few pages of its own: diagrams, formulas, theme, narrow screens, accessibility."""

import shutil
from html import escape
from urllib.parse import urljoin

import pytest
from conftest import ROOT, accessibility, overflow, served
from mkdocs.commands.build import build
from mkdocs.config import load_config

pytestmark = pytest.mark.browser

SOURCE = """flowchart TB
  ids["token ids<br/>[T]"] --> emb["embedding<br/>[T, d_model]"]
  wte["wte.weight<br/>[vocab_size, d_model]"] --> emb
  subgraph block ["× 12"]
    emb --> norm["RMSNorm"] --> attn["attention"] --> plus(("+"))
    emb --> plus
  end
  plus --> out["<b>logits"]
  class ids,out data
  class wte weight
  class norm op
  class attn accent
  class block repeat
  click attn "{target}"
"""


def figure(label, target):
    """What a view emits."""
    source = escape(SOURCE.format(target=target))
    return f"""<figure class="diagram" aria-label="{label}"><pre class="mermaid-source">{source}</pre>
<details class="diagram-steps" open><summary>The same, step by step</summary><ol><li>token ids</li>
<li><a href="{target}">attention</a></li></ol></details></figure>"""


PAGES = {
    "index.md": f"""# Shell

Inline $12{{,}}345 \\cdot L_{{i}}^2$ and

$$
\\begin{{aligned}}
a &= \\left\\lfloor \\frac{{n}}{{\\sqrt{{d_\\text{{head}}}}}} \\right\\rfloor \\bmod 3 \\\\
b &= \\operatorname{{softmax}}
  \\left(\\sum_{{i=1}}^{{n}} \\underbrace{{12 D^2}}_{{\\text{{one block}}}}\\right) + \\min(x, y)
\\end{{aligned}}
$$

$$
8030261248 = 128256 \\cdot 4096 +
32 \\cdot (4096 \\cdot 4096 + 2 \\cdot 4096 \\cdot 1024 + 4096 \\cdot 4096 + 3 \\cdot 4096 \\cdot 14336)
$$

## Diagram

{figure(label="Pipeline", target="deep/page/")}

## Table

<div class="ep-scroll" tabindex="0" role="region" aria-label="Parameters">
<table class="ep-table"><caption>Parameters</caption>
<thead><tr><th>tensor</th><th>shape</th><th class="num">parameters</th><th class="num">share</th></tr></thead>
<tbody><tr><th scope="row"><code>model.layers.{{i}}.self_attn.q_proj.weight</code></th><td>[N·H, D]</td>
<td class="num">16,777,216</td><td class="num">50%</td></tr>
<tr class="accent"><th scope="row"><code>model.layers.{{i}}.self_attn.k_proj.weight</code></th><td>[K·H, D]</td>
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
    "deep/page.md": f"""# Deep

!!! note "A note"
    Dimensions remember their symbols.

```python
def f(x: int) -> str:  # a comment
    return "2" * x if x is not None else lambda y: 3.0
```

<p class="ep-error">preset "llama3-8B": unknown</p>

```mermaid label="A fence"
flowchart LR
  a["first step of this"] --> b["second step of this"] --> c["third step of this"]
  c --> d["fourth step of this"] --> e["fifth step of this"]
```

[Elsewhere](https://elsewhere.example/) and [home](../index.md).
<div style="height: 4000px"></div>

{figure(label="Far below", target="../../")}
""",
}


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """The address of these pages, built with the theme, styles and Markdown extensions of the real mkdocs.yml."""
    folder = tmp_path_factory.mktemp("shell")
    for name, text in PAGES.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
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
            nav=[{"Home": "index.md"}, {"Deep": "deep/page.md"}],
        )
        build(config)
        yield address


def drawn(page, label):
    figure = page.get_by_role("figure", name=label, exact=True)
    figure.locator("svg").wait_for()
    return figure


def test_a_diagram_is_drawn_into_the_page_and_closes_its_list(open_page, shell):
    page = open_page(shell)
    figure = drawn(page, "Pipeline")
    assert "[T, d_model]" in figure.locator("svg").text_content()
    assert figure.locator("svg b").count() == 0
    assert figure.locator("pre").count() == 0
    assert figure.locator("details").get_attribute("open") is None
    first = {kind: figure.locator(f".node.{kind} rect").first for kind in ("data", "weight", "accent", "op")}
    assert len({node.evaluate("e => getComputedStyle(e).fill") for node in first.values()}) == 4
    assert figure.locator(".node.weight rect").first.evaluate("e => getComputedStyle(e).strokeDasharray") != "none"
    assert (
        float(figure.locator(".node.accent rect").first.evaluate("e => parseFloat(getComputedStyle(e).strokeWidth)"))
        > 3
    )


def test_a_diagram_follows_the_palette(open_page, shell):
    fills = {
        scheme: drawn(open_page(shell, color_scheme=scheme), "Pipeline")
        .locator(".node.data rect")
        .first.evaluate("e => getComputedStyle(e).fill")
        for scheme in ("light", "dark")
    }
    assert fills["light"] != fills["dark"]


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_link_in_a_diagram_leads_there_and_back_without_a_reload(open_page, shell, by):
    page = open_page(shell)
    page.evaluate("window.notReloaded = true")
    page.wait_for_load_state("networkidle")  # the sitemap, which instant navigation asks for
    link = drawn(page, "Pipeline").locator("svg a")
    link.focus()
    assert page.evaluate("document.activeElement.tagName") == "a"
    link.click() if by == "mouse" else page.keyboard.press("Enter")
    page.wait_for_url("**/deep/page/")
    drawn(page, "A fence")
    assert page.evaluate("window.notReloaded")
    page.go_back()
    page.wait_for_url(shell)
    link = drawn(page, "Pipeline").locator("svg a")
    link.click()
    page.wait_for_url("**/deep/page/")
    page.get_by_role("figure", name="Far below", exact=True).scroll_into_view_if_needed()
    drawn(page, "Far below").locator("svg a").click()
    page.wait_for_url(shell)
    assert page.evaluate("window.notReloaded")


def test_a_diagram_out_of_view_waits(open_page, shell):
    page = open_page(urljoin(shell, "deep/page/"))
    drawn(page, "A fence")
    far = page.locator("figure[aria-label='Far below']")
    assert far.locator("svg").count() == 0
    assert far.locator("details").get_attribute("open") is None  # nothing below it moves when it is drawn
    far.scroll_into_view_if_needed()
    drawn(page, "Far below")


def test_where_the_library_fails_the_list_stays_open(browser, shell):
    page = browser.new_page()
    page.route("**/mermaid-flowchart.mjs", lambda route: route.abort())
    page.goto(shell)
    figure = page.locator("figure.diagram[data-failed]")
    figure.wait_for()
    assert figure.locator("details").get_attribute("open") is not None
    assert figure.locator("pre").is_hidden()
    page.close()


def test_without_scripts_the_list_and_the_formulas_stand(open_page, shell):
    page = open_page(shell, java_script_enabled=False)
    assert page.locator("figure.diagram ol").is_visible()
    assert page.locator("figure.diagram pre").is_hidden()
    assert page.locator("math").count() == 3
    aligned = page.locator("math mtable").bounding_box()
    assert aligned["height"] > 60


def test_a_formula_has_the_font_that_stretches(open_page, shell):
    page = open_page(shell)
    page.evaluate("document.fonts.ready")
    assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"', 'x')")
    high, plain = page.evaluate("""() => { const m = [...document.querySelectorAll("math mo")]
        return ["⌊", "+"].map(sign => m.find(e => e.textContent === sign).getBoundingClientRect().height) }""")
    assert high > 1.8 * plain


def test_no_mermaid_where_there_is_no_diagram(open_page, shell):
    asked = []
    page = open_page(urljoin(shell, "404.html"))
    page.on("request", lambda request: asked.append(request.url))
    page.reload(wait_until="networkidle")
    assert asked and not [url for url in asked if "vendor/mermaid" in url or "stix" in url]


@pytest.mark.parametrize("path", ["", "deep/page/"])
def test_nothing_is_wider_than_a_phone(open_page, shell, path):
    page = open_page(urljoin(shell, path), viewport={"width": 390, "height": 844})
    page.locator("figure.diagram svg").first.wait_for()
    assert overflow(page) == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["", "deep/page/"])
def test_axe_finds_nothing_serious(open_page, shell, path, width):
    page = open_page(urljoin(shell, path), viewport={"width": width, "height": 900})
    page.locator("figure.diagram svg").first.wait_for()
    assert not accessibility(page)


def test_on_paper_the_list_is_open_and_no_source_is_seen(open_page, shell):
    page = open_page(urljoin(shell, "deep/page/"))
    drawn(page, "A fence")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("pre.mermaid-source").first.is_visible()
    assert page.locator("figure[aria-label='Far below'] ol").is_visible()
    after = "e => getComputedStyle(e, '::after').content"
    assert "https://elsewhere.example/" in page.get_by_role("link", name="Elsewhere").evaluate(after)
    assert page.get_by_role("link", name="home", exact=True).evaluate(after) == "none"


def test_the_home_page_of_the_whole_site_opens(page):
    assert page.locator("h1").count() == 1
    assert overflow(page) == 0
