"""The generated pages of the whole site, and what a wrong preset does to a build."""

import json
import re
from html import unescape
from pathlib import Path
from posixpath import join, normpath
from types import SimpleNamespace

import pytest
from copies import ROOT, build, small_site
from jinja2 import Environment
from mkdocs.config import load_config
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from macros.catalogue import presets
from macros.cli.data import as_json
from macros.site import mkdocs_markdown, mkdocs_skeletons
from macros.site.mkdocs_pages import _entry, called
from macros.site.model_pages import call, header, paragraphs

pytestmark = pytest.mark.processes


def page(site_folder: Path, path: str) -> str:
    return (site_folder / path / "index.html").read_text(encoding="utf-8")


def test_every_preset_has_a_page_with_its_total(site_folder):
    for slug, path in presets.paths().items():
        if presets.preset(slug).config is None:
            continue
        html = page(site_folder, f"models/{path.parent.name}/{slug}")
        assert f"{presets.model(slug).counts.total:,}" in html
        assert html.count('<figure class="diagram"') == 1 + len(
            {str(n.kind) for n in presets.model(slug).trace.root.children if n.layers}
        )
        for heading in ("every-parameter", "the-formula", "kv-cache", "sources", "what-was-checked"):
            assert re.search(rf'<h[23][^>]* id="{heading}"', html)
        assert f"every-parameter describe {slug}" in re.sub(r"<[^>]+>", "", html)


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        (
            header('A "{{ name }}" {% of %}', "")
            + paragraphs(call("said", 'a"b{}%\\é·', "n=5", "all=['a', 'b-c']"), "1"),
            True,
        ),
        (paragraphs("No call.", "{ braces }"), True),
        (paragraphs(call("said", "one"), "<p>{{ 1 + 1 }}</p>"), False),
        (paragraphs("{% set a = 1 %}", call("said", "one")), False),
        (paragraphs(call("said", "one", "what=name")), False),
        (paragraphs(call("unknown", "one")), False),
        (paragraphs(call("said", "wrong")), False),
    ],
)
def test_the_calls_of_a_generated_page_give_what_jinja_gives(text, is_plain):
    """Whatever is more than calls of literals, or wrong, is left to Jinja."""
    environment = Environment(finalize=lambda value: "" if value is None else value)
    plugin = SimpleNamespace(env=environment, macros=environment.globals, variables={}, pre_macro_functions=())
    plugin.macros["said"] = lambda *args, **named: None if 1 // (args != ("wrong",)) and named == {} else (args, named)
    text = text.rpartition("---\n")[2]  # the metadata are MkDocs'
    given = called(plugin, text, object())
    assert (given is not None) == is_plain
    assert not is_plain or given == environment.from_string(text).render()


SECTIONS = """

## Sources

{}

<details class="ep-fold">
<summary>{}</summary>

{}

</details>

### More

{}
"""
ELEMENTS = '<ul><li id="one">_a_ &#95;</li></ul>', "5 *GB*", '<div data-ep-large id="two"><b>b</b></div>', "<dl></dl>"
INTRO = "\n\n<p>Said &#95; with <strong>1</strong> *word*.</p>\n\n<div>\\sheet</div>"
MODEL = "models/folder/model.md"


def read_by(way, markdown: str, path: str, config) -> dict:
    """What a way of reading Markdown leaves on a page."""
    files = Files([File(name, None, config.site_dir, True) for name in (path, "models/index.md")])
    page = Page(None, files.get_file_from_path(path), config)
    page.markdown = markdown
    way(page, config, files)
    links = {file.src_uri: anchors for file, anchors in page.links_to_anchors.items()}
    ids, title = page.present_anchor_ids, page._title_from_render
    return {"html": page.content, "toc": list(map(_entry, page.toc)), "ids": ids, "links": links, "title": title}


@pytest.mark.parametrize(
    ("title", "markdown", "is_alike"),
    [
        ("Name", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("Another-3.5 B", INTRO + SECTIONS.format("<ol></ol>", "", *ELEMENTS[2:]), True),
        ("Phi-3.5-MoE", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("ep-skeleton", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("Sources", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("Two", INTRO + SECTIONS.format(*ELEMENTS[:3], '<div id="sources"></div>'), True),
        ("*Name* & d_model", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("Größe  2", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("", INTRO + SECTIONS.format(*ELEMENTS), True),
        ("Name", "\n\n# Another" + INTRO + SECTIONS.format(*ELEMENTS), False),
        ("Name", "\n\nA *paragraph* about MoE." + SECTIONS.format(*ELEMENTS), False),
        ("Name", INTRO + SECTIONS.format("[away](../index.md)", *ELEMENTS[1:]), True),
        ("Name", INTRO + SECTIONS.format("[away][1]\n\n[1]: ../index.md", *ELEMENTS[1:]), False),
        ("Name", INTRO + SECTIONS.format("[here][1]\n\n[1]: #more", *ELEMENTS[1:]), False),
        ("Name", INTRO, False),
    ],
)
def test_what_pages_have_alike_is_read_as_by_each_of_them(title, markdown, is_alike):
    config = mkdocs_markdown.on_config(load_config(str(ROOT / "mkdocs.yml")))
    mkdocs_skeletons.known.clear()
    read_by(mkdocs_skeletons.render, "# First" + INTRO + SECTIONS.format(*ELEMENTS), MODEL, config)
    markdown = f"# {title}{markdown}" if title else markdown.lstrip()
    for path in (MODEL, "models/folder/below/model.md", "models/model.md"):
        assert read_by(mkdocs_skeletons.render, markdown, path, config) == read_by(Page.render, markdown, path, config)
    assert (len(mkdocs_skeletons.known) == 1) == is_alike


@pytest.mark.parametrize(
    "setting",
    [
        {"baselevel": 2},
        {"toc_depth": "2-3"},
        {"separator": "_"},
        {"slugify": lambda value, separator: f"own{separator}{len(value)}"},
        {"anchorlink": True, "permalink": False},
        {"permalink_leading": True},
        {"permalink": "skeleton"},
        {"title": "skeleton"},
    ],
    ids=" ".join,
)
def test_what_pages_have_alike_is_read_with_any_table_of_contents(setting):
    config = mkdocs_markdown.on_config(load_config(str(ROOT / "mkdocs.yml")))
    config.mdx_configs["toc"] |= setting
    mkdocs_skeletons.known.clear()
    for title in ("First 1.5", "Second"):
        markdown = f"# {title}{INTRO}{SECTIONS.format(*ELEMENTS)}"
        assert read_by(mkdocs_skeletons.render, markdown, MODEL, config) == read_by(
            Page.render, markdown, MODEL, config
        )


def test_no_link_stands_in_a_link(site_folder):
    """A browser ends the first where the second begins: half of what it says would lead elsewhere."""
    for path in site_folder.rglob("*.html"):
        ends = re.findall(r"<(/?)a[\s>]", path.read_text("utf-8"))
        assert ends == ["", "/"] * (len(ends) // 2), path


def test_an_undisclosed_model_has_an_honest_page(site_folder):
    html = page(site_folder, "models/gpt/gpt-4")
    content = html[html.index("<article") : html.index("</article")]
    assert "has not disclosed" in content and "<table" not in content and "<figure" not in content


def test_families_list_their_models_and_are_in_the_navigation(site_folder):
    family = page(site_folder, "models/gpt")
    assert family.index("GPT-2 Small</a>") < family.index("GPT-4</a>")
    catalogue = page(site_folder, "models")
    for family in ("gpt", "llama", "gemma"):
        assert f'href="{family}/"' in catalogue
    assert 'href="llama/llama3-8b/"' in unescape(catalogue)


def test_a_page_carries_its_own_family_in_the_navigation_and_the_page_of_all_models_all(site_folder):
    """So that a page is as large whatever else there is; none is lost on the way."""

    def families(path):
        sidebar = page(site_folder, path).partition("md-sidebar--primary")[2].partition("<article")[0]
        links = (normpath(join(path, link)) for link in re.findall(r'href="([^"#:]*)"', unescape(sidebar)))
        return {link.split("/")[1] for link in links if link.startswith("models/")}

    folders = {path.parent.name for path in presets.paths().values()}
    assert families("models") >= folders and len(folders) > 50
    assert families("models/gpt/gpt2") == families("models/gpt") == {"gpt"}
    assert families("models/llama/llama3-8b") == {"llama"}


def test_the_data_of_a_page_is_what_describe_prints(site_folder):
    content = (site_folder / "data/v1/llama3-8b.json").read_text("utf-8")
    assert content == as_json(presets.model("llama3-8b"), True)
    html = unescape(page(site_folder, "models/llama/llama3-8b"))
    assert 'href="../../../data/v1/llama3-8b.json"' in html and 'href="../../../data/v1/llama3-8b.csv"' in html
    listed = json.loads((site_folder / "data/v1/catalogue.json").read_text("utf-8"))["models"]
    assert {one["model"] for one in listed} == presets.paths().keys()


def test_every_wrong_preset_is_a_line_and_there_is_no_site(tmp_path):
    folder = small_site(tmp_path)
    total = folder / "macros/presets/gpt/gpt2.toml"
    total.write_text(total.read_text().replace("124_439_808", "124_439_809"))
    key = folder / "macros/presets/llama/llama3-8b.toml"
    key.write_text(key.read_text().replace("hidden_size", "hiden_size"))
    built = build(folder)
    assert built.returncode != 0 and "Traceback" not in built.stderr
    lines = [line for line in built.stderr.splitlines() if "macros/presets/" in line]
    assert len(lines) == 2
    assert any("gpt/gpt2.toml" in line and "124,439,809" in line and "124,439,808" in line for line in lines)
    assert any("llama/llama3-8b.toml" in line and "hiden_size" in line for line in lines)
    assert not (folder / "site" / "models").exists()
