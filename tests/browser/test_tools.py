"""The tools in a browser: what if, compare, any config; their addresses, their weight, without scripts, on a phone."""

import gzip
import json
import re
from html import unescape
from urllib.parse import quote, urljoin

import pytest
from conftest import accessibility, overflow, own_assets

from macros.api import comparison
from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.views.charts import area_map
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

MOST_BYTES = 120_000  # of scripts and data of a tool's page, compressed, besides what every page has
SHARED = ("model.mjs", "tools.mjs", "tools/elements.mjs", "tools/kit.mjs")
ASSETS = (*SHARED, "engine/python.mjs", "engine/engine.mjs", "engine/data.json")
PAGES = ("tools/what-if.mjs", "tools/map.mjs"), ("tools/compare.mjs",)  # and what each alone has

# A model that is on no list here: Llama's block in sizes of its own.
UNLISTED = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 50_021,
    "hidden_size": 1536,
    "num_hidden_layers": 23,
    "num_attention_heads": 12,
    "num_key_value_heads": 3,
    "intermediate_size": 4099,
    "tie_word_embeddings": True,
}


@pytest.fixture
def tool(open_page, site):
    """Opens a tool: `tool("what-if", "?model=gpt2")`; its answer stands."""

    def open_(name, asked="", **options):
        page = open_page(urljoin(site, f"tools/{name}/{asked}"), **options)
        if options.get("java_script_enabled", True):
            page.locator("form.ep-whatif").wait_for()
            if name != "config" or asked:
                page.locator(".ep-answer strong").wait_for()
        return page

    return open_


def answer(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def value(page, row, column=-1):
    """A number of the tables, by the words of its row: the exact one."""
    cell = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row, exact=True)).first
    return cell.locator("td span[title]").nth(column).get_attribute("title")


def test_whether_a_model_fits_stands_as_a_sentence(tool):
    needed = sum(costs_of(presets.model("llama3.3-70b").counts).device_bytes(Conditions(32_768, format="fp8")).values())
    missing = needed - accelerator("h100").memory_bytes
    page = tool("what-if", "?model=llama3.3-70b&context=32768&weights=fp8&on=h100")
    assert "Llama 3.3 70B Instruct does not fit on one" in answer(page)
    assert rounding.decimal_bytes(needed) in answer(
        page
    ) and f"{rounding.decimal_bytes(missing)} are missing" in answer(page)
    page.get_by_label("Cache").select_option("fp8")
    page.get_by_text("Llama 3.3 70B Instruct fits on one").wait_for()


def test_a_changed_number_changes_what_follows_and_the_address_keeps_it(tool, open_page):
    model = presets.model("llama3-8b")
    other = presets.make("wider", {**model.raw, "hidden_size": 8192})
    page = tool("what-if")
    page.get_by_label("d_model", exact=True).fill("8192")
    page.get_by_role("columnheader", name="Difference").wait_for()
    assert value(page, "Parameters") == f"{other.counts.total:,} parameters"
    assert value(page, "Parameters", 0) == f"{model.counts.total:,} parameters"
    page.wait_for_url("**?*set.hidden_size=8192")
    again = open_page(page.url)
    again.locator(".ep-answer strong").wait_for()
    assert answer(again) == answer(page) and value(again, "Parameters") == value(page, "Parameters")


MOVED = """
    window.moved = 0
    new PerformanceObserver(all => all.getEntries().forEach(e => moved += e.value)).observe({ type: "layout-shift" })
"""


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_moves_when_two_models_come(tool, open_page, width):
    """Nor does a font that comes late: here none comes."""

    def watch(page):
        page.add_init_script(MOVED)
        page.route("**/*.woff2", lambda route: route.abort())

    page = tool("compare", before=watch, viewport={"width": width, "height": 900})
    page.wait_for_timeout(500)
    open_page.complaints[:] = [said for said in open_page.complaints if "ERR_FAILED" not in said]  # the fonts
    assert page.evaluate("moved") < 0.005


def test_what_cannot_be_is_explained_at_its_field_and_nothing_breaks(tool):
    page = tool("what-if")
    before = answer(page)
    field = page.get_by_label("n_kv_heads", exact=True)
    field.fill("3")
    page.get_by_role("alert").filter(has_text="num_key_value_heads = 3 does not divide").wait_for()
    assert field.get_attribute("aria-invalid") == "true" and answer(page) == before
    field.fill("8")
    page.get_by_role("alert").wait_for(state="hidden")
    assert field.get_attribute("aria-invalid") is None


def test_ways_that_teach_are_taken_and_taken_back(tool):
    page = tool("what-if")
    total = presets.model("llama3-8b").counts.total
    page.get_by_role("button", name="Eight experts, two used").click()
    page.get_by_label("n_experts", exact=True).wait_for()
    page.get_by_role("button", name="Eight experts, two used").click()
    page.get_by_label("n_experts", exact=True).wait_for(state="detached")
    assert value(page, "Parameters") == f"{total:,} parameters"


def shapes(drawing):
    """The boxes and the words of a map, in their order."""
    return re.findall(r' d="([^"]*)"', drawing), [
        unescape(said) for said in re.findall(r"<text[^>]*>(.*?)</text>", drawing)
    ]


@pytest.mark.parametrize("slug", ["deepseek-v3", "gemma3-27b"])
def test_the_map_is_that_of_the_fact_sheet(tool, slug):
    page = tool("what-if", f"?model={slug}")
    [here] = page.locator(".ep-tool .ep-map svg.wide").evaluate_all("all => all.map(e => e.outerHTML)")
    [there] = re.findall(r'<svg class="ep-svg wide".*?</svg>', area_map.area_map_of_model_page(presets.model(slug)))
    assert [d for d in shapes(here)[0] if d] == shapes(there)[0] and shapes(here)[1] == shapes(there)[1]


def test_the_map_moves_with_a_change(tool):
    page = tool("what-if")
    before = page.locator(".ep-map").inner_html()
    page.get_by_role("button", name="Eight experts, two used").click()
    page.get_by_role("columnheader", name="Difference").first.wait_for()
    said = page.locator(".ep-map svg.wide text").all_text_contents()
    assert page.locator(".ep-map").inner_html() != before
    mixture = presets.model("mixtral-8x7b").counts  # has the same feed-forward part in each layer
    experts = sum(part.count for part in mixture.parts if part.name == "mixture_of_experts")
    assert said[0] == "As published: 8.03B" and "Now: " in " ".join(said)
    assert any(line.startswith(rounding.short(experts)) for line in said)


def test_the_parts_and_each_tensor_stand_beside_the_published_ones(tool):
    model = presets.model("llama3-8b")
    wider = presets.make("wider", {**model.raw, "intermediate_size": 7168})
    page = tool("what-if", "?set.intermediate_size=7168")
    page.get_by_text("Parameters by part").click()
    row = page.get_by_role("row").filter(has_text="Feed-forward × 32 layers")
    before, now = (sum(p.count for p in m.counts.parts if p.name == "feed_forward") for m in (model, wider))
    assert row.locator("td").all_inner_texts()[:2] == [f"{before:,}", f"{now:,}"]
    page.get_by_text("Every tensor, with its formula").click()
    page.locator("tr.ep-differs").nth(2).wait_for()
    changed = page.locator("tr.ep-differs").all_inner_texts()
    assert len(changed) == 3 and all("[14,336, 4,096]\t[7,168, 4,096]" in row or "down_proj" in row for row in changed)


def test_compare_begins_with_the_models_of_its_page_and_marks_what_the_command_line_marks(tool):
    page = tool("compare")
    chosen = [page.locator(f"select[name=model{i}]").input_value() for i in (0, 1)]
    assert chosen == ["llama3-8b", "qwen3-8b"]
    marked = page.locator("tr.ep-differs th").all_inner_texts()
    given = Conditions(4096)
    answer = comparison.as_compared([comparison.side(presets.model(slug), given, None) for slug in chosen], given, None)
    assert [name for name in marked if name in answer["models"][0]["hyperparameters"]] == answer["differ"]
    assert "sliding_window" not in marked and "layer_types" not in marked


def test_models_stand_side_by_side(tool):
    page = tool("compare", "?models=qwen3-8b,llama3.1-8b")
    for i, slug in enumerate(("qwen3-8b", "llama3.1-8b")):
        assert value(page, "Parameters", i) == f"{presets.model(slug).counts.total:,} parameters"
    page.get_by_role("button", name="One more").click()
    page.locator("select[name=model2]").select_option("gpt2")
    page.get_by_role("columnheader", name="GPT-2", exact=False).first.wait_for()
    assert "models=qwen3-8b%2Cllama3.1-8b%2Cgpt2" in page.url


def test_drawings_stand_side_by_side_and_differences_are_marked(tool):
    page = tool("compare", "?models=llama3.1-8b,qwen3-8b")
    page.get_by_text("Diagrams side by side").click()
    page.locator(".ep-beside svg").nth(3).wait_for()  # of each the whole and a layer
    marked = page.locator(".ep-beside .ep-differs").evaluate_all("all => all.map(e => e.textContent)")
    assert marked and all("norm" in title.lower() for title in marked)  # of each head's queries and keys
    link = page.locator(".ep-beside a.node").first.evaluate("e => e.href.baseVal")
    assert "/what-happens/" in link and link.startswith("http")


def test_compare_marks_what_rests_on_a_class_default(tool):
    """Of InternLM3 8B the vocabulary is one, and with it the total; the width and the cache are not."""
    page = tool("compare", "?models=internlm3-8b,qwen3-8b")
    rows = page.locator("tr").filter(has_text="§")
    said = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}
    assert {"vocab_size", "Parameters", "Active parameters"} <= said.keys()
    assert not {"d_model", "KV cache per token, bytes"} & said.keys()
    assert all("§" in own and "§" not in other for own, other in said.values())
    assert "§ rests on a default of a class in transformers" in page.inner_text("main")


def test_a_table_of_a_tool_is_sorted_and_stays_so(tool):
    page = tool("what-if", "?set.num_hidden_layers=64")
    page.get_by_text("Parameters by part").click()
    heading = page.locator("details table").get_by_role("columnheader", name="Share")  # once it is drawn
    heading.get_by_role("button").click()
    names = page.locator("details table tbody th")
    assert names.all_inner_texts()[0].startswith("Feed-forward") and names.all_inner_texts()[-1] == "Together"
    page.get_by_label("d_ff", exact=True).fill("256")
    page.get_by_role("row").filter(has_text="Feed-forward").filter(has_text="201,326,592").wait_for()
    assert heading.get_attribute("aria-sort") == "descending"
    assert names.all_inner_texts()[0].startswith("Attention") and names.all_inner_texts()[-1] == "Together"


def test_a_config_of_ones_own_is_counted_and_an_unknown_one_is_said(tool):
    total = presets.make("mine", UNLISTED).counts.total
    page = tool("config")
    page.get_by_label("A config.json").fill(json.dumps(UNLISTED))
    page.locator(".ep-answer strong").wait_for()
    assert value(page, "Parameters") == f"{total:,} parameters"
    page.get_by_label("A config.json").fill('{"model_type": "made-up"}')
    page.get_by_role("alert").filter(has_text="model_type = 'made-up' is not known").wait_for()
    linked = tool("config", f"#config={quote(json.dumps(UNLISTED))}")
    assert value(linked, "Parameters") == f"{total:,} parameters"


def test_unknown_sizes_and_another_head_are_said_above_the_figures(tool):
    page = tool("config")
    page.get_by_label("A config.json").fill(
        json.dumps(UNLISTED | {"num_tails": 3, "architectures": ["LlamaForSequenceClassification"]})
    )
    answer = page.locator(".ep-answer")
    answer.locator("strong").first.wait_for()
    assert answer.inner_text().startswith("Not counted, unknown sizes: num_tails. LlamaForSequenceClassification: ")
    page.get_by_label("A config.json").fill(json.dumps(UNLISTED | {"architectures": ["LlamaForCausalLMEagle3"]}))
    page.get_by_role("alert").filter(has_text="'LlamaForCausalLMEagle3': a draft head (EAGLE-3)").wait_for()


def test_a_list_of_tensors_is_held_against_the_config(tool):
    names = [name for name, _ in presets.make("mine", UNLISTED).counts.tensors()]
    index = {"weight_map": dict.fromkeys([*names[1:], "model.vision.weight"], "model.safetensors")}
    page = tool("config", f"#config={quote(json.dumps(UNLISTED))}")
    given = dict(name="model.safetensors.index.json", mimeType="application/json", buffer=json.dumps(index).encode())
    page.get_by_label("List of tensors").set_input_files(given)
    said = page.locator(".ep-reconciled")
    said.get_by_text(f"{len(names) - 1:,} of {len(names):,} tensors").wait_for()
    assert names[0] in said.inner_text() and "model.vision.weight" in said.inner_text()


def test_without_scripts_a_table_stands(tool):
    page = tool("what-if", java_script_enabled=False)
    assert page.get_by_role("row").filter(has_text="Double the depth").count() == 1
    page = tool("compare", java_script_enabled=False)
    assert page.get_by_role("row").filter(has_text="Qwen3 8B").count() == 1
    assert "every-parameter describe" in tool("config", java_script_enabled=False).content()


@pytest.mark.parametrize("name", ["what-if", "compare"])
def test_on_a_phone_and_for_everybody(tool, name):
    page = tool(name, viewport={"width": 390, "height": 844})
    assert not overflow(page)
    assert not accessibility(page)


def test_scripts_and_data_are_light(site_folder):
    assets = own_assets(site_folder)
    engine = {
        path.stem: path.read_bytes()
        for path in (assets / "engine").glob("*.mjs")
        if f"engine/{path.name}" not in ASSETS
    }

    def together(name, seen):
        if name in seen:
            return 0
        seen.add(name)
        text = engine[name].decode()
        return len(gzip.compress(engine[name])) + sum(together(n, seen) for n in engine if f'import"./{n}.mjs"' in text)

    def sent(names):
        return sum(len(gzip.compress((assets / name).read_bytes())) for name in names)

    listed = {name for names in (ASSETS, *PAGES) for name in names}
    apart = {"tools/capitals.mjs", "tools/tensors.mjs"}  # without the engine; fetched once a list is given
    assert {f"tools/{path.name}" for path in (assets / "tools").iterdir()} <= listed | apart
    page, tools = sent(ASSETS), max(map(sent, PAGES))
    architecture = max(together(name, set()) for name in engine)
    model = max(len(gzip.compress(path.read_bytes())) for path in (assets / "engine" / "models").iterdir())
    assert page + tools + architecture + model <= MOST_BYTES, (page, tools, architecture, model)
