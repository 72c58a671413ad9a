"""What any builder can use: the Markdown extensions alone; the generated pages and the links, without MkDocs."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from markdown import Markdown
from mkdocs.structure.files import File

from macros.engine.errors import Problem
from macros.site import links
from macros.site.extensions import large_blocks

ROOT = Path(__file__).parent.parent
OURS = "macros.site.extensions."
OTHERS = ["admonition", "attr_list", "def_list", "md_in_html", "tables", "pymdownx.superfences", "pymdownx.highlight"]

ROWS = "".join(f"<tr><td>row {n} of *stars* and `ticks` under_lined_words</td></tr>" for n in range(20))
TABLE = f'<div class="ep-scroll"><div id="inside" title="a &amp; b"><table>{ROWS}</table></div></div>'
PLACES = {
    "a line": "{}",
    "between lines": "before\n{}\nafter",
    "a list": "- first\n\n    {}\n\n- last",
    "an admonition": "!!! note\n\n    {}\n",
    "a sentence": "before {} after",
    "a quotation": "> {}",
    "twice in a line": "{} {}",
    "after a fence": "```sh\nls\n```\n\n{}",
    "a heading before": "## Title {{ data-x }}\n\n{}",
    "HTML that holds Markdown": '<div markdown="1">\n\n## Title\n\n{}\n\n</div>',
    "HTML that holds none": "<details>\n<summary>what</summary>\n\n{}\n\n</details>",
}
CODE = {
    "a fence": "```html\n{}\n```",
    "a fence after a fence": "~~~\nx\n~~~\n\n```html\n{}\n```",
    "a fence in a quotation": "> ```\n> {}\n> ```",
    "indented code": "text\n\n    {}\n",
    "code in a sentence": "text `{}` text",
}


def html(text: str, *ours: str, **options) -> str:
    return Markdown(extensions=[*OTHERS, *(OURS + name for name in ours)], extension_configs=options).convert(text)


def written(place: str) -> str:
    return place.replace("{}", large_blocks.marked(TABLE)).replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_large_block_comes_back_as_it_was(place):
    page = html(written(place), "large_blocks")
    assert page.count(TABLE) == place.count("{}") and "data-ep" not in page


@pytest.mark.parametrize("place", CODE.values(), ids=CODE)
def test_a_large_block_in_code_is_read_as_text(place):
    page = html(written(place), "large_blocks")
    text = unescape(re.sub(r"<[^>]*>", "", page))
    assert text.replace(" data-ep-large", "").count(TABLE) == 1 and "data-ep-taken" not in text


def test_without_the_extension_a_macro_holds_nothing_back():
    page = html(written("before\n\n{}\n\nafter"))
    assert page.replace(" data-ep-large", "").count(TABLE) == 1


def test_what_is_not_one_element_of_a_line_is_left_alone():
    for result in (5, None, "<div>short</div>", "<p>" + "x" * 600 + "</p>", TABLE.replace("<tr>", "\n<tr>")):
        assert large_blocks.marked(result) is result
    unclosed = "<div>" + "x" * 600 + "<div>y</div>"
    page = html(large_blocks.marked(unclosed) + "\n\n</div>\n", "large_blocks")
    assert page.startswith(unclosed) and "data-ep" not in page
    two = html(large_blocks.marked(TABLE + TABLE), "large_blocks")
    assert two.count(TABLE) == 2


def test_a_large_block_in_another_comes_back_with_it():
    around = TABLE.replace("<table>", f"{large_blocks.marked(TABLE)}<table>")
    assert html(large_blocks.marked(around), "large_blocks") == TABLE.replace("<table>", f"{TABLE}<table>")


def test_a_second_page_has_nothing_of_the_first():
    extension = large_blocks.LargeBlocks()
    md = Markdown(extensions=[extension])
    other = TABLE.replace("row", "line")
    assert md.convert(large_blocks.marked(TABLE)) == TABLE
    assert md.reset().convert(large_blocks.marked(other)) == other
    assert extension.blocks == [], "kept for the life of the builder"


def test_a_link_to_an_anchor_in_a_large_block_is_known_and_a_wrong_one_is_not(tmp_path):
    """With MkDocs and the extension alone, no hook."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n\n[to](two.md#inside) [no](two.md#nowhere)\n")
    (tmp_path / "docs/two.md").write_text(f"# Two\n\n{written('{}')}\n")
    (tmp_path / "mkdocs.yml").write_text(
        f"site_name: x\nplugins: []\nmarkdown_extensions: [{OURS}large_blocks]\n"
        "validation: {links: {anchors: warn}}\n"
    )
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(tmp_path / "mkdocs.yml")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0 and "#nowhere" in built.stderr and "#inside" not in built.stderr, built.stderr
    assert TABLE in (tmp_path / "site/two/index.html").read_text()


def test_a_formula_is_mathml_and_a_wrong_one_is_raised_or_told():
    assert html("so $a_1$ and $$b$$.\n\n$$c$$", "math").count("<math") == 3
    with pytest.raises(Problem, match="not LaTeX"):
        html("$\\nothing$", "math")
    told = []
    page = html("$\\nothing$ and $x$", "math", **{f"{OURS}math": {"on_problem": told.append}})
    assert len(told) == 1 and 'class="ep-error"' in page and page.count("<math") == 1


def test_the_glossary_explains_its_words_and_names_a_wrong_line(tmp_path):
    file = tmp_path / "words.md"
    token = "token { .tip }\n`id`\n:   A *piece* of [text](x.md). See [more](y.md)."
    file.write_text(f"## Words\n\n{token}\n\nKV {{ .tip }}\n:   Keys and values.\n")
    options = {f"{OURS}glossary": {"file": str(file)}}
    page = html("A token, KV and *[own]: not this\n\n*[mine]: here\n\nmine", "glossary", **options)
    assert '<abbr title="a piece of text">token</abbr>' in page and '<abbr title="keys and values">KV</abbr>' in page
    assert '<abbr title="here">mine</abbr>' in page
    assert "<abbr" not in html("an id", "glossary", **options)
    extensions = ["def_list", "attr_list", f"{OURS}glossary"]
    for others in ([], ["pymdownx.inlinehilite"]):  # which puts code aside
        anchored = Markdown(extensions=[*extensions, *others], extension_configs=options).convert(
            "causal mask { .tip }\n`q_proj`\n:   It."
        )
        assert '<dt class="tip" id="causal-mask">' in anchored and '<dt id="q_proj">' in anchored
    file.write_text("## Words\n\ntoken { .tip }\n:   A piece.\n\n\nno entry\n")
    with pytest.raises(Problem, match=r"no entry of the glossary") as raised:
        html("x", "glossary", **options)
    assert raised.value.where.endswith("words.md:7")


PAGES = (
    "index.md",
    "one.md",
    "README.md",
    "a/index.md",
    "a/b.md",
    "a/b c.md",
    "a/b/index.md",
    "a/v2.5.md",
    "a/b.json",
    "ü/x.md",
)


@pytest.mark.parametrize("has_folders", [True, False], ids=["a/b/", "a/b.html"])
def test_links_are_those_of_mkdocs(has_folders):
    for target in PAGES:
        for source in (page for page in PAGES if page.endswith(".md")):
            to, start = (File(page, "docs", "site", has_folders) for page in (target, source))
            assert links.relative_link(target, source, has_folders) == to.url_relative_to(start), (target, source)


def test_a_plain_list_of_pages_is_enough_for_links():
    class Page:
        class file:
            src_uri = "what/is.md"

    class Env:
        conf: dict = {}
        page = Page
        variables = {"files": ["models/gpt/gpt2.md", "index.md"]}

    assert links.link_to_page(Env, "index.md") == "../../"
    assert links.link_to_model(Env, "gpt2") == "../../models/gpt/gpt2/"
    assert links.link_to_model(Env, "llama3-8b") is None and links.link_to_page(Env, "nowhere.md") is None


@pytest.mark.processes
def test_threads_may_typeset_at_once_and_the_process_ends():
    """V8 started by two of them at once ended it."""
    program = """
import threading
from macros.views.kit.mathml import mathml
threads = [threading.Thread(target=mathml, args=(f"x_{n}",)) for n in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert "<math" in mathml("y")
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.processes
def test_the_generated_pages_are_plain_data():
    """Path, Markdown and navigation of each, in a Python that has no MkDocs; the macros are there too."""
    program = """
import sys
for name in ("mkdocs", "mkdocs_macros", "material"):
    sys.modules[name] = None
from macros.catalogue import page_paths, presets
from macros.site import model_pages, page_macros
pages = model_pages.pages()
assert len({page.path for page in pages}) == len(pages) and all(type(page.content) is str for page in pages)
assert {page_paths.model_page(slug) for slug in presets.paths()} < {page.path for page in pages}
home, models = model_pages.with_families([{"Home": "index.md"}, {"Models": ["models/index.md"]}])
families = [pages for family in models["Models"][1:] for pages in family.values()]
named = [next(iter(page.values())) if type(page) is dict else page for pages in families for page in pages]
assert sorted(named) == sorted(page.path for page in pages if page.path.endswith(".md"))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
