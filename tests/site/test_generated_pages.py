"""The generated pages of the whole site, and what a wrong preset does to a build."""

import json
import re
from html import unescape
from pathlib import Path
from posixpath import join, normpath
from types import SimpleNamespace

import pytest
from copies import build, small_site
from jinja2 import Environment
from markdown import Markdown

from macros.catalogue import presets
from macros.data.model import as_json
from macros.site.extensions.large_blocks import MARK, LargeBlocks
from macros.site.mkdocs.pages import with_macros_called, written_out
from macros.site.model_pages import header, macro_call, paragraphs
from macros.site.page_frames import Frames, Rendered

pytestmark = pytest.mark.processes
WAYS = "prev", "next"


def page(site_folder: Path, path: str) -> str:
    return (site_folder / path / "index.html").read_text(encoding="utf-8")


def test_the_whole_site_is_built_strictly_and_tells_nothing(site_folder):
    """No warning, either: the fixture says what there is."""
    assert (site_folder / "index.html").is_file()


def test_every_preset_has_a_page_with_its_total(site_folder):
    for slug, path in presets.paths().items():
        if presets.preset(slug).config is None:
            continue
        html = page(site_folder, f"models/{path.parent.name}/{slug}")
        assert f"{presets.model(slug).counts.total:,}" in html
        assert html.count('<figure class="diagram"') == 1
        for heading in ("every-parameter", "the-formula", "kv-cache", "sources", "what-was-checked"):
            assert re.search(rf'<h[23][^>]* id="{heading}"', html)
        assert f"every-parameter describe {slug}" in re.sub(r"<[^>]+>", "", html)


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        (
            header('A "{{ name }}" {% of %}', "")
            + paragraphs(macro_call("said", 'a"b{}%\\é·', "n=5", "all=['a', 'b-c']"), "1"),
            True,
        ),
        (paragraphs("No call.", "{ braces }"), True),
        (f"{macro_call('said', 'one')} (and {macro_call('said', 'two')}).", True),
        (paragraphs("{% raw %}", macro_call("said", "one"), "{% endraw %}"), True),
        (paragraphs(macro_call("said", "one"), "<p>{{ 1 + 1 }}</p>"), False),
        (paragraphs("{% set a = 1 %}", macro_call("said", "one")), False),
        (paragraphs(macro_call("said", "one", "what=name")), False),
        (paragraphs(macro_call("unknown", "one")), False),
        (paragraphs(macro_call("said", "wrong")), False),
    ],
)
def test_the_calls_of_a_generated_page_give_what_jinja_gives(text, is_plain):
    """Whatever is more than calls of literals and text that is only shown, or wrong, is left to Jinja."""
    environment = Environment(finalize=lambda value: "" if value is None else value)
    plugin = SimpleNamespace(env=environment, macros=environment.globals, variables={}, pre_macro_functions=())
    plugin.macros["said"] = lambda *args, **named: None if 1 // (args != ("wrong",)) and named == {} else (args, named)
    text = text.rpartition("---\n")[2]  # the metadata are MkDocs'
    given = with_macros_called(plugin, text, object())
    assert (given is not None) == is_plain
    assert not is_plain or given == environment.from_string(text).render()


@pytest.mark.parametrize(
    ("meta", "text", "is_written"),
    [
        ({"title": "One"}, "One: {{ said() }}.", True),
        ({}, "{% if 1 %}One: {{ said() }}.{% endif %}", False),
        ({"render_macros": False}, "One: {{ said() }}.", False),
    ],
    ids=["calls", "more than calls", "as the page says"],
)
def test_a_written_page_with_calls_alone_is_not_compiled(meta, text, is_written):
    """The plugin is told so; what a page says of it stays."""
    environment = Environment(finalize=lambda value: value)
    plugin = SimpleNamespace(env=environment, macros={"said": lambda: "1"}, variables={}, pre_macro_functions=())
    written_page, before = SimpleNamespace(meta=dict(meta), title="One"), dict(meta)
    given = written_out(text, written_page, SimpleNamespace(plugins={"macros": plugin}))
    assert given == ("One: 1." if is_written else None)
    assert written_page.meta == (before | {"render_macros": False} if is_written else before)


def page_of(title: str, *more: str) -> str:
    """A page as the generator writes them."""
    large = f'<div {MARK} class="ep-block"><p id="of-{title.split()[0]}">{title} &lt; <em>all</em></p></div>'
    said = [f"# {title}", f"<p>{title}, <strong>1</strong></p>", large, "## KV cache { #cache }", "### Memory"]
    folded = f'<details class="ep-fold">\n<summary>*{title}*</summary>\n\n{large}\n\n</details>'
    anchors = '<span id="one"></span><span id="two"></span>'
    return "\n\n".join([*said, anchors, large, folded, "<ul><li>*a*</li></ul>", *more]) + "\n"


@pytest.mark.parametrize(
    ("pages", "frames"),
    [
        ([page_of("GPT-2 Small"), page_of("Phi 3.5"), page_of("OLMoE")], 1),
        ([page_of("Phi"), page_of("Phi", "A *sentence*."), page_of("Phi", "A *sentence*.")], 2),
        ([page_of("Phi", "[all](../index.md)"), page_of("OLMoE", "[all](../index.md)")], 1),
        ([page_of("Memory"), page_of("One"), page_of("MoE of 2"), page_of("a&#95;b"), page_of("A", "[b](c.md)")], 1),
    ],
    ids=["alike", "with text", "with a link above", "unlike"],
)
def test_pages_with_one_frame_are_as_markdown_renders_each(pages, frames):
    extensions = ["abbr", "attr_list", "md_in_html", "toc", LargeBlocks()]
    options = {"toc": {"permalink": True}, "abbr": {"glossary": {"MoE": ""}}}
    md = Markdown(extensions=extensions, extension_configs=options)

    def render(markdown: str) -> Rendered:
        html = md.reset().convert(markdown)
        contents = [as_entry(token) for token in md.toc_tokens]
        links = {source: {anchor: f"#{anchor}" for anchor in re.findall(r'href="#(.*?)"', html)}}
        return Rendered(contents, contents[0][0], sorted({*re.findall(r' id="(.*?)"', html)}), links, html)

    def as_entry(token: dict) -> list:
        return [token["name"], token["id"], token["level"], [as_entry(child) for child in token["children"]]]

    shared = Frames(["MoE"])
    for n, text in enumerate(pages):
        source = f"models/a/{n}.md"
        assert shared.render(text, source, render) == render(text)
    assert len(shared.rendered) == frames


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


def test_a_family_leads_from_model_to_model_and_back_to_the_list(site_folder):
    """Not on to the next family of the alphabet; the list itself leads to the pages behind the models."""

    def beside(path: str) -> tuple[str | None, ...]:
        html = page(site_folder, path)
        found = (re.search(rf'<a href="([^"]+)" class="md-footer__link md-footer__link--{way}"', html) for way in WAYS)
        return tuple(one and one[1] for one in found)

    assert beside("models/llama") == ("../", "llama-7b/")
    assert beside("models/a-x/a.x-k1") == ("../", "../../")
    assert beside("models/choices")[1] == "../../tools/" and beside("tools") == ("../models/choices/", "fits/")
