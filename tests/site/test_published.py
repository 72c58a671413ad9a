"""What machines get of a published site: Markdown beside each page, llms.txt, addresses, structured data."""

import json
import re
from functools import cache
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from types import SimpleNamespace
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
from copies import ROOT
from guide_pages import address, pages
from jinja2 import Environment
from kinds import KINDS
from rcssmin import cssmin
from sampling import CI, fewer, sampled
from serving import own_assets
from vendor.math_font import ABOUT, CHARACTERS, FONT, ITALIC

from macros.browser.bundle import without_comments
from macros.catalogue import page_paths, presets
from macros.site import hashed, moved, published
from macros.site.links import page_address
from macros.site.plain_markdown import markdown
from macros.views.kit.mathml import without_tex, wrapping

SQUARE, LONG = (
    r"\frac{k<d \, \$}{\sqrt{H}}",
    r"12 \cdot n_{\text{layers}} \cdot d_{\text{model}}^2 + V \cdot D + x_{abcdef}",
)
HTML = (
    '<h2 id="a">A &amp; b<a class="headerlink" href="#a">¶</a></h2>'
    '<p>See <a href="../x/">the <em>x</em></a>, '
    "<code>q_proj</code> and 10<sup>9</sup>.</p><svg><title>A chart</title><text>12</text></svg>"
    '<div class="ep-scroll"><table><caption>Sizes</caption>'
    '<thead><tr><th>Model</th><th class="num">Total</th></tr></thead>'
    '<tbody><tr id="r"><th>Tiny</th><td class="num">8,030</td></tr>'
    '<tr><th colspan="2">All</th></tr></tbody></table></div>'
    f"{wrapping(SQUARE, display=True)} or {wrapping(LONG)}<ul><li>one</li><li>two</li></ul>"
    '<div class="highlight"><pre><span></span><code>a = <span class="mi">1</span>\nb</code></pre></div>'
)


WORD = re.compile(r"[^\W_]+")
# What a page says, laid out: drawings, formulas and what is no content are left out, what is behind a click is not.
# Figures' tables stand once, those of the opening after its text, as in the copy.
SAID = """() => {
  const article = document.querySelector("article")
  const away = "svg, math, script, style, form, template, .headerlink, .diagram-source, .md-content__button, " +
    ".ep-cite, .ep-bibtex"
  for (const one of article.querySelectorAll(away)) one.replaceWith(" ")
  const first = article.querySelector(":scope > h2"), seen = new Set()
  for (const one of article.querySelectorAll("details.wide")) {
    if (!one.querySelector("summary").textContent.startsWith("The same as ")) continue
    if (seen.has(one.innerHTML)) one.remove()
    else if (!first) article.append(one)
    else if (first.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING) first.before(one)
    seen.add(one.innerHTML)
  }
  for (const one of article.querySelectorAll("sup, sub")) one.before(" ")
  for (const one of article.querySelectorAll("details")) one.open = true
  return article.innerText
}"""


def test_a_page_is_markdown_without_its_drawings():
    assert markdown("<p>a &lt;b&gt; 1 &lt; 2 &#60;script> $2$ <code>&lt;i&gt; $</code></p>") == (
        "a \\<b> 1 < 2 \\<script> \\$2\\$ `<i> $`\n"
    )
    assert markdown(HTML) == (
        "## A & b\n\nSee [the *x*](../x/), `q_proj` and 10^9.\n\n[Figure: A chart]\n\n**Sizes**\n\n"
        "| Model | Total |\n| --- | --- |\n| Tiny | 8,030 |\n| All |  |\n\n"
        f"$${SQUARE}$$ or ${LONG}$\n\n"
        "- one\n- two\n\n```\na = 1\nb\n```\n"
    )


def test_a_copy_begins_with_the_pages_text_and_has_each_figures_table_once():
    def figure(caption, n):
        rows = f"<table><thead><tr><th>n</th></tr></thead><tbody><tr><td>{n}</td></tr></tbody></table>"
        fold = f'<details class="wide"><summary>The same as a table</summary>{rows}</details>'
        return f"<figure><figcaption>{caption}</figcaption>{fold}</figure>"

    def table(n):
        return f"**The same as a table**\n\n| n |\n| --- |\n| {n} |\n\n"

    opening = f"<h1>A</h1><div>{figure('One', 1)}{figure('Two', 2)}{figure('Three', 1)}<h2>Door</h2></div><p>Text</p>"
    assert markdown(f"{opening}<h2>B</h2>{figure('Four', 4)}<p>Then</p>{figure('Five', 2)}") == (
        f"# A\n\nOne\n\nTwo\n\nThree\n\n## Door\n\nText\n\n{table(1)}{table(2)}## B\n\nFour\n\n{table(4)}Then\n\nFive\n"
    )
    assert markdown(f"<p>A</p>{figure('One', 1)}<p>B</p>") == f"A\n\nOne\n\nB\n\n{table(1)}"[:-1]


def test_a_table_that_an_author_wrote_has_a_row_on_each_line():
    rows = "<tr>\n<th></th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td><code>x</code></td>\n</tr>"
    assert markdown(f"<table>\n<thead>\n{rows}\n</tbody>\n</table>") == "|  | b |\n| --- | --- |\n| 1 | `x` |\n"


def test_code_stays_as_it_is_in_markdown():
    def block(code):
        return f'<div class="highlight"><pre id="__code_1"><a id="line"></a><code>{code}</code></pre></div>'

    code = "  def f(x):\n\n\n      return x  # &lt;b&gt; **no** | - li"
    plain = "  def f(x):\n\n\n      return x  # <b> **no** | - li"
    other = block("```\n&lt;i&gt;\n```")
    assert markdown(f"<p>One</p>{block(code)}<p>Two</p>{other}<p>Three &lt;i></p>") == (
        f"One\n\n```\n{plain}\n```\n\nTwo\n\n````\n```\n<i>\n```\n````\n\nThree \\<i>\n"
    )


@pytest.mark.parametrize(
    "pages",
    ["index.html models/index.html models/[dl]*/index.html reference/[mp]*/index.html models/*/*x7b/index.html"]
    + [pytest.param("**/index.html", marks=[pytest.mark.slow("opens dozens of pages"), pytest.mark.timeout(1800)])],
    ids=["some", "many"],
)
def test_each_word_that_a_browser_shows_stands_in_the_pages_markdown(open_page, site, site_folder, pages):
    """In its order, and apart from the one before: two numbers that styles alone keep apart would be one."""
    paths = {path for pattern in pages.split() for path in site_folder.glob(pattern) if not leads_on(path)}
    of_models = sorted(path for path in paths if path.match("site/models/*/*/index.html"))
    others = sorted(paths - {*of_models})
    paths = {*sampled(of_models, 48), *(others if len(others) < 20 else sampled(others, 16))}
    assert len(paths) > 5
    page = open_page(site, java_script_enabled=False)
    for path in sorted(paths):
        name = path.parent.relative_to(site_folder).as_posix()
        page.goto(urljoin(site, f"{name}/"))
        shown = WORD.findall(page.evaluate(SAID))
        assert len(shown) > 12, name
        copy = iter(WORD.findall(path.with_suffix(".md").read_text("utf-8")))
        missing = next((n for n, word in enumerate(shown) if word not in copy), None)  # `in` goes on behind the last
        assert missing is None, f"{name}: {shown[max(missing - 5, 0) : missing + 5]}"


CODE = re.compile(r"(?ms)^(`{3,})$.*?^\1$|`[^`\n]*`|\\\$")
FORMULA = re.compile(r"(?<!\\)(\$\$?)(.+?)(?<!\\)\1")
MATH = re.compile(r"<math\b.*?</math>", re.S)
SPACES = re.compile(r"\s+", re.ASCII)


def pages_of(folder):
    """Without those that only lead to where a page is by now."""
    return [path for path in folder.rglob("index.html") if not leads_on(path)]


def leads_on(path):
    return 'http-equiv="refresh"' in path.read_text("utf-8")


def test_each_formula_of_a_page_is_latex_in_its_markdown(site_folder):
    """In its order, each the one that the page's own is made of."""
    found = 0
    for path in fewer(sorted(pages_of(site_folder)), 4):
        name, page = path.parent.relative_to(site_folder).as_posix(), path.read_text("utf-8")
        assert ' data-tex="' not in page, name
        shown = [unescape(SPACES.sub(" ", one)) for one in MATH.findall(page)]
        copy = CODE.sub("", path.with_suffix(".md").read_text("utf-8"))
        made = [MATH.findall(drawn(latex, len(dollars) > 1)) for dollars, latex in FORMULA.findall(copy)]
        assert shown == [piece for pieces in made for piece in pieces], name
        found += len(made)
    assert found > (10_000 if CI else 500)


@cache
def drawn(latex, display):
    """What a page shows of a formula."""
    return unescape(SPACES.sub(" ", without_tex(wrapping(latex, display))))


def test_the_edition_is_the_latest_entry_of_the_changelog():
    assert published.edition("# Log\n\n## 1.2.0 (2026-11-09)\n\n- x\n\n## 1.1.0 (2026-01-01)\n") == (
        "1.2.0",
        "9 November 2026",
    )
    assert published.edition("# Log\n") is None and published.edition_date("# Log\n") is None
    assert published.edition_date("# Log\n\n## 1.2.0 (2026-11-09)\n\n## 1.1.0 (2026-01-01)\n") == "2026-11-09"
    assert published.edition((ROOT / "docs" / published.CHANGELOG).read_text("utf-8"))


def test_structured_data_cannot_end_its_element_and_names_what_is_known():
    def absolute(source):
        return f"https://x.y/{source}"

    page = page_paths.model_page("llama3-8b")
    said = published.json_ld(page, "</script><b>", "d", absolute)
    assert "<" not in said
    about = json.loads(said)
    assert about["variableMeasured"]["value"] == presets.model("llama3-8b").counts.total
    assert about["distribution"]["contentUrl"] == "https://x.y/data/v1/llama3-8b.json" and about["url"] == absolute(
        page
    )
    undisclosed = json.loads(published.json_ld(page_paths.model_page("gpt-4"), "t", "d", absolute))
    assert "variableMeasured" not in undisclosed and undisclosed["name"] == "GPT-4"
    catalogue = json.loads(published.json_ld(page_paths.CATALOGUE, "Models", "d", absolute))
    assert len(catalogue["dataset"]) == len(presets.paths())
    assert published.json_ld("index.md", "t", "d", absolute) is None


def test_the_name_of_the_scripts_folder_changes_with_them_and_with_nothing_else():
    files = [("assets/a.mjs", b"1"), ("assets/b.css", b"23")]
    name = hashed.hashed_folder(files)
    assert re.fullmatch(r"assets-[0-9a-f]{12}", name) and hashed.hashed_folder(reversed(files)) == name
    others = ([("assets/a.mjs", b"2"), files[1]], [("assets/c.mjs", b"1"), files[1]], files[:1])
    assert (
        len(
            {
                name,
                *map(hashed.hashed_folder, others),
                hashed.hashed_folder([("assets/a.mjs", b"12"), ("assets/b.css", b"3")]),
            }
        )
        == 5
    )
    moved = {
        "assets/tools/x.mjs",
        "assets/engine/data.json",
        "assets/capitals/config.json",
        "assets/vendor/x.woff2",
        "assets/search/open.js",
    }
    stay = {"assets/logo.svg", "assets/vendor/x.txt", "data/v1/gpt2.json", "x.css"}
    assert set(filter(hashed.is_moved, moved | stay)) == moved
    assert hashed.hashed_path("assets/tools/x.mjs", "assets-1") == "assets-1/tools/x.mjs"
    written = {"assets/tools/x.mjs", "assets/search/open.js"}
    made = {"assets/engine/engine.mjs", "assets/vendor/x.mjs"}
    assert set(filter(hashed.is_written_here, moved | made)) == written


def test_a_script_is_sent_without_types_and_comments():
    types = "/**\n * @param {string} s b\n */\n"
    script = f"// a\n\n{types}const f = s => {{\n  g(/** @type {{string}} */ (`/* ${{s}}`)) // c\n}}\n"
    assert without_comments(script) == "const f = s => {\ng((`/* ${s}`)) // c\n}"


def test_one_sheet_is_all_sheets_in_their_order():
    """The theme's, then ours; where they say something twice, the last says it. What it names lies where it says."""
    sheets = ['@charset "UTF-8";a{b:c}\n/*# sourceMappingURL=x.css.map */', "/* d */ e > f { g: h }"]
    rule = "[data-md-color-switching] *,[data-md-color-switching] :after{i:j!important}k{l:m}"
    unused = "[dir=rtl] a{b:c}@media print{.md-version,.x:is(y,z),.md-search__form:is(a,b){o:p}}"
    colors = "[data-md-color-primary=red],[data-md-color-accent=lime] q{r:s}"
    one = hashed.one_sheet((*sheets, rule, unused, colors), frozenset({"lime"}))
    assert one == "a{b:c}e>f{g:h}k{l:m}@media print{.x:is(y,z){o:p}}[data-md-color-accent=lime] q{r:s}"


@pytest.mark.processes
def test_what_the_styles_name_lies_where_they_say(site_folder):
    folder = own_assets(site_folder)
    styles = (folder / "styles.css").read_text("utf-8")
    named = set(re.findall(r"url\([\"']?(?!data:|#)([^)\"']+)", styles))
    assert len(named) >= 3 and all((folder / address).is_file() for address in named), named
    texts = [cssmin((ROOT / "docs/assets" / name).read_text("utf-8")) for name in ("site.css", "components.css")]
    places = [styles.index(text) for text in (".md-header__inner{", *texts)]
    assert places == sorted(places) and "@charset" not in styles and "color-switching" not in styles
    for path in KINDS:
        file = site_folder / path
        page = (file / "index.html" if file.is_dir() else file).read_text("utf-8")
        classes = {f".{name}" for said in re.findall(r'class="([^"]*)"', page) for name in said.split()}
        assert not [name for name in classes if hashed.UNUSED.match(name)], path
        assert 'dir="rtl"' not in page


def test_a_sitemap_is_never_empty():
    """With the site's address and without it, where each page's is told from the map."""
    template = Environment().from_string((ROOT / "docs/overrides/sitemap.xml").read_text("utf-8"))

    def pages(canonical, *links):
        page = SimpleNamespace(canonical_url=canonical, is_link=False, update_date="2026-11-21")
        return [SimpleNamespace(page=page, url="a/b&c/"), *(SimpleNamespace(page=link) for link in links)]

    def read(listed):
        tree = ElementTree.fromstring(template.render(pages=listed))
        return [element.text for element in tree.iter() if element.tag.endswith(("}loc", "}lastmod"))]

    assert read(pages("https://x.y/a/b&c/", SimpleNamespace(is_link=True))) == ["https://x.y/a/b&c/", "2026-11-21"]
    assert read(pages(None)) == ["./a/b&c/", "2026-11-21"]


@pytest.mark.processes
def test_scripts_and_styles_are_found_under_their_hashed_name(site_folder):
    """And nowhere else; a page asks for none that the theme's own names do not tell apart."""
    folder = own_assets(site_folder)
    content = [(f"assets/{p.relative_to(folder).as_posix()}", p.read_bytes()) for p in folder.rglob("*") if p.is_file()]
    assert folder.name == hashed.hashed_folder(content)
    assert {"assets/styles.css", "assets/site.mjs", "assets/engine/engine.mjs"} < dict(content).keys()
    for name in ("site.mjs", "search/open.js"):
        text = (ROOT / "docs/assets" / name).read_text("utf-8")
        assert (folder / name).read_text("utf-8") == without_comments(text) != text
    assert not [p for p in (site_folder / "assets").rglob("*") if p.suffix in {".mjs", ".css"}]
    for path in ("index.html", "404.html", "tools/what-if/index.html"):
        page = (site_folder / path).read_text("utf-8")
        asked = re.findall(r'<(?:script|link rel="(?:stylesheet|preload)")[^>]*(?:src|href)="([^"]+)"', page)
        assert len(asked) > 6 and sum(address.endswith(".css") for address in asked) == 1
        assert all(f"{folder.name}/" in a or re.search(r"\.[0-9a-f]{8}\.min\.(css|js)$", a) for a in asked), asked


@pytest.mark.processes
def test_every_page_has_its_address_a_description_and_its_markdown(site_folder, pytestconfig):
    address, descriptions = pytestconfig.site[1], {}
    pages = pages_of(site_folder)
    for path in pages:
        head = path.read_text("utf-8").partition("</head>")[0]
        folder = path.parent.relative_to(site_folder).as_posix()
        own = address if folder == "." else f"{address}{folder}/"
        assert f'<link rel="canonical" href="{own}">' in head and f'property="og:url" content="{own}"' in head, folder
        [description] = re.findall(r'<meta name="description" content="([^"]+)">', head)
        assert descriptions.setdefault(description, folder) == folder, "two pages have one description"
        copy = path.with_suffix(".md").read_text("utf-8")
        assert copy.startswith(("# ", "[Figure")) or folder == ".", folder
        assert not re.search(r"<(p|td|tr|span|div|a)\b|¶", re.sub(r"```.*?```|`[^`]*`", "", copy, flags=re.S)), folder
    listed = re.findall(r"\]\((\S+)\)", (site_folder / "llms.txt").read_text("utf-8"))
    assert sorted(listed) == sorted(
        f"{address}{p.with_suffix('.md').relative_to(site_folder).as_posix()}" for p in pages
    )
    home, numbers = (
        (site_folder / f"{name}index.md").read_text("utf-8") for name in ("", "model-size/why-these-numbers/")
    )
    assert 0 < home.index("\nA language model is") < home.index("\n|") < home.index("\n## Two numbers")
    captions = re.findall(r"^\*\*.*: \d+ .*models.*\*\*$", numbers, re.M)
    assert len(captions) == len(set(captions)) == 4 and numbers.index("\nSome of these sizes") < numbers.index("\n|")
    total = f"{presets.model('deepseek-v3').counts.total:,}"
    assert total in (site_folder / "models/deepseek/deepseek-v3/index.md").read_text("utf-8")


@pytest.mark.processes
def test_a_page_says_how_it_is_cited_and_each_tensor_has_an_address(site_folder, pytestconfig):
    html = (site_folder / "models/deepseek/deepseek-v3/index.html").read_text("utf-8")
    edition = published.edition((ROOT / "docs" / published.CHANGELOG).read_text("utf-8"))
    [cited] = re.findall(r'<p class="ep-cite">(.*?)</p>', html, re.S)
    assert f"“DeepSeek-V3”, version {edition.version} of {edition.date}, " in cited
    assert f"{pytestconfig.site[1]}models/deepseek/deepseek-v3/" in cited
    [table] = re.findall(r'<table class="ep-table ep-tensors">.*?</table>', html, re.S)
    anchors = [anchor.replace("&#46;", ".") for anchor in re.findall(r'<tr id="(?!deepseek-v3-)([^"]+)"', table)]
    counts = presets.model("deepseek-v3").counts
    assert sorted(anchors) == sorted(next(w.names()) for w in counts.weights) and len(set(anchors)) == len(anchors)


def test_the_math_font_has_what_the_formulas_show(site_folder):
    """Mend: add the character to tests/vendor/math_font.py, and make the font anew."""
    assert sha256(FONT.read_bytes()).hexdigest() in ABOUT.read_text("utf-8")
    pages = [path.read_text("utf-8") for path in site_folder.rglob("index.html")]
    formulas = {f.partition("</math>")[0] for page in pages for f in page.split("<math")[1:]}
    shown = set()
    for name, text in {leaf for f in formulas for leaf in re.findall(r"<(m[inots]\w*)[^<>]*>([^<]+)<", f)}:
        is_italic = name == "mi" and len(unescape(text)) == 1
        shown.update(ITALIC.get(c, c) if is_italic else c for c in unescape(text))
    assert "𝑊" in shown and "⌊" in shown
    assert sorted(shown - CHARACTERS) == []


class Open(HTMLParser):
    """The words of an article as it opens: folds closed, without tables, figures and steps."""

    def __init__(self, html: str):
        super().__init__()
        self.around: list[tuple[str, bool, bool]] = []  # tag, whether it is shown, and whether what it is in is
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in VOID:
            return
        given, (_, is_shown, around) = dict(attrs), self.around[-1] if self.around else ("", False, False)
        is_aside = tag in ASIDE or "ep-walk" in (given.get("class") or "").split()
        is_fold = tag == "details" and "open" not in given
        shown = tag == "article" or (around if tag == "summary" else is_shown and not is_aside and not is_fold)
        self.around.append((tag, shown, is_shown))

    def handle_endtag(self, tag):
        while tag not in VOID and self.around and self.around.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.around and self.around[-1][1]:
            self.words += [word for word in data.split() if re.search(r"\w", word)]


VOID = set("area base br col embed hr img input link meta source track wbr".split())
ASIDE = set("table figure svg script style template".split())
MOST_WORDS = 900


@pytest.mark.parametrize("page", pages(("How a model works",)))
def test_a_page_of_the_path_opens_with_at_most_900_words(site_folder, page):
    words = Open((site_folder / address(page) / "index.html").read_text("utf-8")).words
    assert 300 < len(words) <= MOST_WORDS, f"{page}: {len(words)} words; fold what not every reader wants"


def test_no_address_and_no_anchor_has_gone(site_folder):
    """Those that the written pages ever had (addresses.txt), and those of models' sections that are one now."""
    for line in (ROOT / "tests/site/addresses.txt").read_text("utf-8").splitlines()[1:]:
        path, *anchors = line.split(" #")
        for old, new in moved.moved().items():
            if page_address(old) == path:
                path = page_address(new.partition("#")[0])
        html = (site_folder / path / "index.html").read_text("utf-8")
        assert not set(anchors) - set(map(unescape, re.findall(r' id="([^"]+)"', html))), path
    for slug, former in {
        "llama/llama3-8b": ["one-layer"],
        "deepseek/deepseek-v3": ["the-kinds-of-layers", "dense-layers-02", "mixture-of-experts-layers-360"],
    }.items():
        html = (site_folder / "models" / slug / "index.html").read_text("utf-8")
        assert all(f'id="{anchor}"' in html for anchor in former)
